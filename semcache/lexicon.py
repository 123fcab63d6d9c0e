"""Words the guard knows, English and Chinese: what carries no content, what means the same, what is opposite.

Only data, pure. A word that is missing here costs a hit, never a wrong one: unknown words must be equal on both
sides. Synonyms are therefore few and safe, opposites may be generous.
"""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words whose presence or absence changes nothing that an answer depends on. Words that can turn a meaning
# (on, off, before, without, not, my, your ...) are here too, because checks of their own look at them.
FUNCTION_EN = words(
    """
    a an the this that these those is are am was were be been being isn't aren't do does did doing done can could will
    would shall should may might must cannot have has had having
    what which who whom whose when where why how come
    i me my mine myself we us our ours ourselves you your yours yourself he him his she her hers they them their it its
    in on at for to from of by with about as into onto off up down out over under before after without within between
    and or but if then than so not no never none any some there here
    please thanks thank hi hello hey team there um uh er erm well ok okay just really actually basically
    tell show let know like want need wish wanna gonna explain go going
    get gets got getting obtain receive much many exactly possible possibly able way ways
    whats hows wheres whens whos im ive id thats yes yeah yep sorry bother cheers but also
    """
)

# Groups of words that may replace each other in a question; the first one stands for all.
SYNONYMS_EN: tuple[tuple[str, ...], ...] = (
    ("cost", "price", "fee", "charge"),
    ("install", "instal"),
    ("previous", "earlier"),
    ("drawback", "downside", "disadvantage"),
    ("benefit", "advantage"),
    ("dispute", "challenge"),
    ("mute", "silence"),
    ("close", "shut"),
    ("big", "large"),
    ("fast", "quick", "quickest", "fastest", "rapid"),
    ("shop", "store"),
    ("film", "movie"),
    ("begin", "start", "commence"),
    ("end", "finish"),
    ("buy", "purchase"),
    ("fix", "repair", "mend"),
    ("change", "modify", "alter", "edit", "update"),
    ("delete", "erase"),
    ("find", "locate"),
    ("phone", "telephone"),
    ("photo", "picture", "photograph"),
    ("make", "create"),
    ("enable", "activate"),
    ("disable", "deactivate"),
    ("permit", "allow", "allowed", "permitted"),
    ("forbid", "prohibit", "ban", "forbidden", "prohibited", "banned"),
    ("mail", "email", "e-mail"),
    ("cheap", "inexpensive"),
    ("cause", "causes", "reason"),
    ("child", "children", "kid", "kids"),
    ("people", "person", "persons"),
    ("company", "firm", "business"),
    ("sign-in", "login", "signin", "logon"),
    ("hour", "hr", "hours", "hrs"),
    ("minute", "min", "minutes", "mins"),
    ("second", "sec", "seconds", "secs"),
    ("day", "days"),
    ("year", "yr", "yrs", "years"),
    ("pound", "gbp", "pounds", "quid"),
    ("dollar", "usd", "dollars"),
    ("euro", "eur", "euros"),
    ("yuan", "rmb", "cny"),
    ("percent", "pct", "percentage"),
    ("kilometre", "km", "kilometer"),
    ("metre", "meter"),
    ("kilogram", "kg"),
    ("megabyte", "mb"),
    ("gigabyte", "gb"),
    ("annual", "yearly"),
    ("weather", "forecast"),
)

# Each line is one kind of choice; the sides of it exclude each other.
CONTRASTS_EN: tuple[tuple[str, ...], ...] = (
    ("on", "off"),
    ("up", "down"),
    ("in", "out"),
    ("into", "out"),
    ("over", "under"),
    ("above", "below"),
    ("before", "after"),
    ("with", "without"),
    ("inside", "outside"),
    ("more most", "less least fewer fewest"),
    ("open opened opening opens", "close closed closing closes shut"),
    ("enable enabled", "disable disabled"),
    ("start begin starts begins", "stop end finish stops ends"),
    ("pause", "resume"),
    ("buy purchase", "sell"),
    ("lend", "borrow"),
    ("send", "receive"),
    ("deposit", "withdraw withdrawal"),
    ("increase raise", "decrease reduce lower"),
    ("upgrade", "downgrade"),
    ("upload", "download"),
    ("import", "export"),
    ("add", "remove"),
    ("create", "delete"),
    ("install", "uninstall"),
    ("connect", "disconnect"),
    ("lock", "unlock"),
    ("subscribe", "unsubscribe"),
    ("encrypt", "decrypt"),
    ("join", "leave"),
    ("accept approve accepted approved", "reject decline deny rejected declined denied refused"),
    ("allow permit allowed permitted", "forbid ban prohibit forbidden banned prohibited"),
    ("grant", "revoke"),
    ("include included", "exclude excluded"),
    ("arrive arrival arrivals", "depart departure departures"),
    ("first", "last"),
    ("best", "worst"),
    ("maximum max highest", "minimum min lowest"),
    ("cheap cheapest", "expensive dearest"),
    ("old oldest older", "new newest newer young youngest younger"),
    ("left", "right"),
    ("north", "south", "east", "west"),
    ("hot", "cold"),
    ("public", "private"),
    ("success successful successfully", "failure unsuccessful unsuccessfully failed"),
    ("benefit benefits advantage advantages", "drawback drawbacks disadvantage disadvantages"),
    ("male men man husband father", "female women woman wife mother"),
    ("adult adults", "child children kid kids"),
    ("morning", "afternoon", "evening", "night"),
    ("breakfast", "lunch", "dinner"),
    ("winter", "spring", "summer", "autumn"),
    ("yesterday", "today tonight", "tomorrow"),
    ("daily", "weekly", "monthly", "yearly annual"),
    ("small", "medium", "large"),
)

CONTRASTS_ZH: tuple[tuple[str, ...], ...] = (
    ("打开 开启 启用 开通 激活", "关闭 关掉 停用 禁用 取消"),
    ("买", "卖"),
    ("借入", "借出"),
    ("存款 存钱 存入", "取款 取钱 取出"),
    ("转入", "转出"),
    ("收到 接收", "发送 发出"),
    ("充值", "提现 退款"),
    ("增加 提高 升高 上升 上涨 涨", "减少 降低 下降 下跌 跌"),
    ("升级", "降级"),
    ("上传", "下载"),
    ("导入 进口", "导出 出口"),
    ("添加", "删除 移除"),
    ("安装", "卸载"),
    ("连接", "断开"),
    ("锁定", "解锁"),
    ("绑定", "解绑"),
    ("订阅", "退订"),
    ("登录", "退出 注销"),
    ("加入", "离开"),
    ("通过 批准 接受", "拒绝 驳回"),
    ("允许", "禁止"),
    ("包含 包括", "不含 除外"),
    ("之前 以前", "之后 以后"),
    ("最高 最大 最多", "最低 最小 最少"),
    ("便宜", "贵"),
    ("上班", "下班"),
    ("上午 早上 早晨", "中午", "下午", "晚上 夜里"),
    ("早餐 早饭", "午餐 午饭", "晚餐 晚饭"),
    ("左", "右"),
    ("东", "南", "西", "北"),
    ("热", "冷"),
    ("男", "女"),
    ("成人 大人", "儿童 小孩"),
    ("成功", "失败"),
    ("优点 好处", "缺点 坏处"),
    ("单程", "往返"),
    ("昨天", "今天", "明天"),
    ("春", "夏", "秋", "冬"),
)

PERSONS_EN: tuple[frozenset[str], ...] = (
    words("i me my mine myself we us our ours"),
    words("you your yours yourself"),
    words("he him his"),
    words("she her hers"),
    words("they them their theirs"),
)
PERSONS_ZH = ("我咱", "你您", "他", "她")

NEGATION_EN = words(
    """
    not no never none nobody nothing nowhere neither nor cannot without unable except unless hardly
    lack lacks missing avoid fail fails failed dont doesnt didnt cant wont isnt arent wasnt
    """
)
# Longest first is the reader's business. Phrases that only look like a negation are taken out before.
NEGATION_ZH = ("不", "没", "无", "未", "别", "勿", "非", "禁", "莫", "除了")
NOT_A_NEGATION_ZH = words(
    "是不是 能不能 可不可以 可不可 会不会 有没有 要不要 好不好 行不行 对不对 该不该 用不用 需不需要 能否 是否 可否 "
    "不错 不同 不但 不仅 不过 不管 不论 不如 不久 不断 不少 不得不 差不多 对不起 不好意思 了不起 "
    "无线 无锡 无论 无人机 非常 非洲 特别 区别 分别 别人 别的 性别 级别 类别 别墅 别名 未来 未必 没问题 禁忌"
)

# Chinese words that carry no content in a question.
FUNCTION_ZH = words(
    "请问一下 请问 麻烦 帮我 帮忙 告诉我 告诉 能不能 可不可以 是不是 有没有 能否 是否 可否 可以 能够 想要 想 要 应该 "
    "需要 一下 一个 一些 一点 什么样 什么 怎么样 怎么办 怎么 哪些 哪个 哪 吗 呢 啊 呀 吧 嘛 么 了 的 地 得 着 过 我 你 "
    "您 他 她 它 们 请 我们 你们 是 有 会 能 会不会 那么 那 这个 这 个 在 和 与 及 就 都 也 还 又 再 很 "
    "不 没 无 未 别 勿 并 为 多少"
)

SYNONYMS_ZH: tuple[tuple[str, ...], ...] = (
    ("怎么", "如何", "怎样", "咋样", "咋"),
    ("怎么样", "怎么样子", "如何样"),
    ("打开", "开启", "启用", "开通", "激活"),
    ("关闭", "关掉", "停用", "禁用"),
    ("哪里", "哪儿", "何处", "什么地方"),
    ("什么", "啥"),
    ("什么时候", "何时", "啥时候"),
    ("多少钱", "什么价格", "价格是多少", "价格多少", "多贵"),
    ("为什么", "为何", "为啥"),
    ("修改", "更改", "更换", "变更"),
    ("删除", "删掉"),
    ("购买", "买"),
    ("手机号", "手机号码", "电话号码"),
    ("登录", "登陆"),
    ("密码", "口令"),
    ("地址", "位置"),
    ("介绍", "简介"),
    ("公司", "企业"),
    ("联系", "联络"),
    ("天气", "天气情况"),
)

# What a question asks for. Two that ask for different kinds are different questions.
QUESTION_KINDS: tuple[tuple[str, str], ...] = (
    (
        "cost",
        r"\bhow much (?:is|are|does|do|will|would|did|it)\b|\bwhat\b.*\b(?:costs?|charges?|prices?|fees?)\b|"
        r"多少钱|价格|费用|收费",
    ),
    ("how long", r"\bhow long\b|多久|多长时间"),
    ("how often", r"\bhow often\b|多久一次|频率"),
    ("how many", r"\bhow many\b|几个|多少(?!钱)"),
    ("how far", r"\bhow far\b|多远"),
    ("how old", r"\bhow old\b|多大年纪|几岁"),
    ("when", r"\bwhen\b|\bwhat (?:time|day|date)\b|什么时候|何时|几点|哪天|什么时间"),
    ("where", r"\bwhere\b|哪里|哪儿|什么地方"),
    ("who", r"\bwho(?:m|se)?\b|谁"),
    ("why", r"\bwhy\b|\bhow come\b|为什么|为何"),
    ("how", r"\bhow (?:do|can|to|could|should|would|does)\b|怎么(?!样)|如何"),
    (
        "whether",
        r"^(?:is|are|am|do|does|did|can|could|will|would|should|may|must|have|has)\b|吗[?？。!！ ]*$|"
        r"能不能|是不是|有没有|可不可以|是否|能否",
    ),
)

# What the kind of a question says already, so that its words need no equal on the other side.
SAID_BY_KIND: dict[str, frozenset[str]] = {
    "cost": words("cost costs price prices fee fees charge charges"),
    "when": words("time day date"),
}

# Courtesies around a question, taken off before it is read.
COURTESIES_BEFORE = (
    r"(?:hi|hello|hey)(?: team| there| all)?", r"(?:good )?(?:morning|evening|afternoon|day)",
    r"quick (?:question|one)", r"sorry(?: to bother you)?", r"please", r"so", r"um+", r"uh+", r"ok(?:ay)?", r"well",
    r"yeah", r"but", r"(?:can|could|would) you (?:please )?(?:tell me|explain)(?: to me)?",
    r"(?:do you|does anyone) know", r"i(?:'d| would) like to (?:know|ask)", r"你好", r"您好", r"请问(?:一下)?",
    r"麻烦问一下",
)  # fmt: skip
COURTESIES_AFTER = (r"(?:many )?thanks(?: in advance)?", r"thank you", r"please", r"cheers", r"谢谢")
