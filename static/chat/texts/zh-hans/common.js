// Chinese: what many parts of the page say.

export default {
  "keep": "保留",
  "delete": "删除",
  "copy": "复制",
  "edit": "修改",
  "send": "发送",
  "stop": "停止",
  "try_again": "重试",
  "sign_in": "登录",
  "connect_now": "立即连接",
  "dismiss": "关闭",
  "ms": "{n} 毫秒",
  "seconds": "{n} 秒",
  "age.now": "刚刚",
  "age.minutes": "{n} 分钟前",
  "age.hours": "{n} 小时前",
  "age.days": "{n} 天前",
};
