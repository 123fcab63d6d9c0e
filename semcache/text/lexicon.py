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
    one kindly require required requires u ur pls plz thx whether take took taken taking takes make made making makes
    teh hte taht thsi adn yuo cna wich whcih shoudl woudl coudl
    submit submitting submitted dont doesnt didnt cant wont isnt arent wasnt
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
    ("change", "modify", "alter", "edit", "update", "switch", "swap"),
    ("delete", "erase"),
    ("find", "locate"),
    ("phone", "telephone"),
    ("photo", "picture", "photograph"),
    ("eligible", "entitled", "qualify", "qualified", "eligibility"),
    ("enable", "activate"),
    ("disable", "deactivate"),
    ("permit", "allow", "allowed", "permitted"),
    ("forbid", "prohibit", "ban", "forbidden", "prohibited", "banned"),
    ("mail", "email", "e-mail"),
    ("cheap", "inexpensive"),
    ("return", "send-back"),
    ("register", "registration", "enrol", "enroll", "enrolment", "enrollment"),
    ("help", "assist", "assistance"),
    ("choose", "select", "pick"),
    ("answer", "reply", "respond", "response"),
    ("holiday", "vacation"),
    ("lorry", "truck"),
    ("flat", "apartment"),
    ("luggage", "baggage"),
    ("doctor", "physician"),
    ("quiet", "silent"),
    ("glad", "happy"),
    ("sick", "ill"),
    ("garbage", "rubbish", "trash"),
    ("sofa", "couch"),
    ("automobile", "car"),
    ("occur", "happen"),
    ("assure", "guarantee"),
    ("difficult", "hard"),
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
    # Short forms.
    ("information", "info"),
    ("document", "doc", "documents", "docs"),
    ("account", "acct"),
    ("department", "dept"),
    ("government", "govt"),
    ("appointment", "appt"),
    ("address", "addr"),
    ("password", "pwd", "passwd"),
    ("message", "msg"),
    ("temperature", "temp"),
    ("laboratory", "lab"),
    ("university", "uni"),
    ("examination", "exam"),
    ("refrigerator", "fridge"),
    ("bicycle", "bike"),
    ("airplane", "plane", "aeroplane"),
    ("advertisement", "advert", "ad"),
    ("mathematics", "math", "maths"),
    ("television", "tv", "telly"),
    ("configuration", "config", "configure"),
    ("administrator", "admin"),
    ("repository", "repo"),
    ("database", "db"),
    ("gymnasium", "gym"),
    ("javascript", "js"),
    ("typescript", "ts"),
    ("kubernetes", "k8s"),
    ("approximately", "approx"),
    ("centimetre", "cm", "centimeter"),
    ("millimetre", "mm", "millimeter"),
    ("millilitre", "ml", "milliliter"),
    ("litre", "liter"),
    ("gram", "gramme"),
    ("kilogram", "kilo", "kilos"),
    ("foot", "feet", "ft"),
    ("week", "wk", "weeks", "wks"),
    ("month", "months", "mth"),
    # Spellings.
    ("colour", "color"),
    ("favourite", "favorite"),
    ("neighbour", "neighbor"),
    ("behaviour", "behavior"),
    ("labour", "labor"),
    ("centre", "center"),
    ("theatre", "theater"),
    ("licence", "license"),
    ("programme", "program"),
    ("grey", "gray"),
    ("traveller", "traveler"),
    ("jewellery", "jewelry"),
    ("catalogue", "catalog"),
    ("organise", "organize"),
    ("organisation", "organization"),
    ("recognise", "recognize"),
    ("apologise", "apologize"),
    ("customise", "customize"),
    ("optimise", "optimize"),
    ("analyse", "analyze"),
    ("authorise", "authorize"),
    # A thing and what is done.
    ("form", "formation"),
    ("use", "usage"),
    ("pay", "payment", "paid"),
    ("cancel", "cancellation", "cancelled", "canceled", "cancelling", "canceling"),
    ("deliver", "delivery"),
    ("subscribe", "subscription"),
    ("renew", "renewal"),
    ("translate", "translation"),
    ("convert", "conversion"),
    ("remove", "removal"),
    ("verify", "verification"),
    ("confirm", "confirmation"),
    ("invite", "invitation"),
    ("reserve", "reservation"),
    ("complain", "complaint"),
    ("available", "availability"),
    ("allergic", "allergy", "allergies"),
    ("wireless", "wirelessly"),
    ("accidental", "accidentally"),
    ("refund", "refundable"),
    ("arrive", "arrival"),
    ("depart", "departure"),
    ("different", "difference", "differ", "diff"),
    ("building", "bldg"),
    # Irregular forms.
    ("send", "sent"),
    ("lose", "lost"),
    ("break", "broke", "broken"),
    ("forget", "forgot", "forgotten"),
    ("write", "wrote", "written"),
    ("speak", "spoke", "spoken"),
    ("build", "built"),
    ("woman", "women"),
    ("man", "men"),
)

# Ways to say the same, as patterns over lower-case text; the right side is what the other checks know.
PHRASES_EN: tuple[tuple[str, str], ...] = (
    (r"\bper cent\b", "percent"),
    (r"\b(?:check|see|find out|tell) (?:if|whether)\b", "whether"),
    (r"\binsurance (?:policy|cover)\b", "insurance"),
    (r"\bswimming pool\b", "pool"),
    (r"\b(?:what are )?(your|the) (?:opening|business) (?:hours|times)\b", r"when are \1 open"),
    (r"(?<=\d) ?m\b", " metre"),
    (r"\brecieve", "receive"),
    (r"\b(?:waht|whta|hwat)\b", "what"),
    (r"\b(?:wehn|hwen)\b", "when"),
    (r"\bhwo\b", "how"),
    (r"\btom+or+ow\b", "tomorrow"),
    (r"\bo'?clock\b", ""),
    (r"\b(?:lemme|let me) (?:know|see)\b", "tell me"),
    (r"\bwanna\b", "want to"),
    (r"\bgonna\b", "going to"),
    (r"\bgotta\b", "have to"),
    (r"\bone[- ]way\b", "oneway"),
    (r"\b(?:get|have|receive|claim) (?:my |the |our )?money back\b", "get refund"),
    (r"\bmoney back\b", "refund"),
    (r"\bsign(ed|ing)? up\b", r"register\1"),
    (r"\bsign(?:ed|ing)? in(?=to\b)?|\blog(?:ged|ging)? (?:in|on)(?=to\b)?", "login "),
    (r"\bsign(?:ed|ing)? out\b|\blog(?:ged|ging)? (?:out|off)\b", "logout"),
    (r"\b(?:get|getting) in touch with\b", "contact"),
    (r"\bcom(?:e|es|ing) with\b", "include"),
    (r"\bget(?:ting)? rid of\b", "remove"),
    (r"\bsend(ing)? (it |them |this )?back\b", r"return\1 \2"),
    (r"\bcall(?:ed|ing)? off\b", "cancel"),
    (r"\bstay (open|closed|valid)\b", r"\1"),
    (r"\b(?:find out|figure out|work out)\b", "find"),
    (r"\bhow high is\b|\b(?:what is )?the height of\b", "how tall is"),
    (r"\b(?:what is )?the age of\b", "how old is"),
    (r"\b(?:what is )?the (?:total )?number of\b", "how many"),
    (r"\bhow much time (?:does|do|will|would|did) it take\b", "how long"),
    (r"\bhow long (?:does|do|will|would|did) it (?:usually |typically |normally )?take\b", "how long"),
    (r"\b(?:at )?what hour\b", "what time"),
    (r"\bin (?:which|what) (?:place|location)\b", "where"),
    (r"\b(?:for (?:what|which) reason|how come)\b", "why"),
    (
        r"\b(?:what(?: is| are) )?the (?:\w+ )?(?:process|procedure|steps?|method|ways?|instructions?) "
        r"(?:for|to|of|on how to)\b",
        "how to",
    ),
    (r"\bwhat (?:do|must|should|would) (?:i|we|you) (?:need|have)?(?: to)? ?do (?:in order )?to\b", "how to"),
    (r"\bwhat steps do (?:i|we|you) take to\b", "how to"),
    (r"\b(?:walk|guide|talk) me through(?: how to)?\b|\b(?:show|teach) me (?:how )?to\b", "how to"),
    (r"\bhow (?:would|does|should|can|could|do|might) (?:someone|somebody|one|anyone|you|we|i)\b", "how to"),
    (r"\bhow (?:do|does|would) (?:one|a person) go about\b|\bhow to go about\b", "how to"),
    (
        r"\b(?:is it (?:possible|okay|ok|fine|alright) (?:for me )?to|is there (?:a|any) way (?:for me )?to)\b",
        "can i",
    ),
    (r"\bam i (?:able|allowed|permitted) to\b|\bare we (?:able|allowed|permitted) to\b", "can i"),
    (r"\bwhat (?:does|do|did) (.+?) (?:mean|stand for)\b", r"what is \1"),
    (r"\b(?:the )?(?:meaning|definition) of\b|\bwhat is meant by\b", "what is"),
    (r"\bunited states(?: of america)?\b|\bu\.s\.(?:a\.)?", "usa"),
    (r"\bunited kingdom\b|\bu\.k\.", "uk"),
    (r"\bnew york city\b", "nyc"),
    (r"\bartificial intelligence\b", "ai"),
    (r"\b(?:cash machine|cashpoint|cash point)s?\b", "atm"),
    (r"\bdate of birth\b", "dob"),
    (r"\bvalue[- ]added tax\b", "vat"),
    (r"\bchief executive(?: officer)?\b", "ceo"),
    (r"\b(?:two|2)[- ](?:factor|step) (?:auth(?:entication)?|verification|login)\b", "2fa"),
    (r"\b(?:mobile|cell|cellular) phone\b|\bcellphone\b", "mobile"),
    (r"\bfrequently asked questions\b", "faq"),
    (r"\bas soon as possible\b", "asap"),
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
    ("always", "sometimes", "never"),
    ("make made making", "take took taken taking"),
    ("give gave given giving", "take took taken taking"),
    ("all every each", "some"),
    ("all", "only"),
    ("least", "most"),
    ("upper", "lower"),
    ("front", "back"),
    ("inbound incoming", "outbound outgoing"),
    ("debit", "credit"),
    ("domestic", "international"),
    ("single oneway", "return"),
    ("full-time", "part-time"),
    ("celsius", "fahrenheit", "kelvin"),
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
    ("至少", "至多"),
    ("以上", "以下"),
    ("以内 之内", "以外 之外"),
    ("全部 所有", "部分"),
    ("国内", "国际 国外"),
    ("上一", "下一"),
    ("上个", "下个"),
    ("上周", "这周 本周", "下周"),
    ("去年", "今年", "明年"),
    ("前天", "后天"),
    ("前", "后"),
    ("进", "出"),
    ("来", "去"),
    ("摄氏", "华氏"),
    ("中文 汉语", "英文 英语", "日文 日语"),
)

# Words that may stand anywhere in a sentence without changing who does what.
MOVABLE_EN = words(
    "today tonight tomorrow yesterday now currently usually normally still already always often"
)
MOVABLE_ZH = words(
    "今天 今日 今晚 明天 明日 明晚 昨天 昨日 昨晚 后天 前天 现在 目前 早上 早晨 上午 中午 下午 晚上 夜里 周末 "
    "今年 明年 去年 本周 这周 下周 上周 本月 这个月 下个月 上个月 每天 每月 每年 平时 通常 一般"
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
    "需要 一下 一个 一些 一点 什么样 什么 怎么样 怎么办 怎么 哪些 哪个 哪 吗 呢 啊 呀 吧 嘛 么 了 的 地 得 着 我 你 "
    "您 他 她 它 们 请 我们 你们 是 有 会 能 会不会 那么 那 这个 这 个 在 和 与 及 就 都 也 还 又 再 很 "
    "不 没 无 未 别 勿 并 为 多少 "
    "想问一下 想问问 想问 咨询一下 想咨询 咨询 想了解 了解一下 想知道 知道 有人知道 谁知道 能告诉 说一下 说说 "
    "讲一下 讲讲 讲解 介绍一下 介绍 列出 列举 给出 查一下 查查 看一下 看看 解释一下 解释 描述一下 描述 帮忙 劳驾 "
    "拜托 麻烦您 麻烦你 打扰一下 打扰了 打扰 谢谢您 谢谢 感谢 多谢 您好 你好 哈喽 到底 究竟 具体 大概 进行 才能 "
    "介绍下 问下 说下 查下 看下 讲下 解释下 "
    "该 得 之 其 所 以及 并且 或者 "
    "请您 请你 一下子 呗 哦 噢 哟 哈 给我 跟我 对我 让我 我想 我要 这边 那边 几点 "
    "什么时间 什么时候 何时 哪天 多久 多长时间 多少钱 为什么 哪里"
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
    ("天气", "天气情况", "天气状况"),
    ("账", "帐"),
    ("查看", "查询", "查找"),
    ("使用", "利用"),
    ("帮助", "协助"),
    ("开始", "起始"),
    ("结束", "终止"),
    ("退货", "退回商品"),
    ("退款", "退钱"),
    ("元", "块钱", "人民币"),
    ("美元", "美金"),
    ("公里", "千米"),
    ("公斤", "千克"),
    ("小时", "钟头", "个小时", "个钟头"),
    ("周", "星期", "礼拜"),
    ("电脑", "计算机"),
    ("手机", "移动电话"),
    ("电视", "电视机"),
    ("空调", "空调机"),
    ("自行车", "单车", "脚踏车"),
    ("地铁", "地下铁"),
    ("超市", "超级市场"),
    ("北大", "北京大学"),
    ("清华", "清华大学"),
    ("央行", "中央银行", "人民银行"),
    ("身份证", "身份证件", "居民身份证"),
    ("驾照", "驾驶证"),
    ("医保", "医疗保险"),
    ("社保", "社会保险"),
    ("公积金", "住房公积金"),
    ("高铁", "高速铁路"),
    ("快递", "包裹"),
    ("孩子", "小孩", "小朋友"),
    ("爸爸", "父亲"),
    ("妈妈", "母亲"),
    ("医生", "大夫"),
    ("老师", "教师"),
    ("方法", "办法"),
    ("区别", "差别", "不同之处", "有什么不同", "有何不同"),
    ("原因", "缘由"),
    ("办理", "申办"),
    ("申请", "申领"),
    ("支持", "支援"),
    ("尽快", "尽早"),
    ("重置", "重设"),
    ("撤销", "撤回"),
    ("取消", "取消掉"),
    ("有效期", "有效期限"),
    ("免费", "不收费", "不要钱", "不用钱"),
    ("包邮", "免邮", "免运费"),
    ("营业时间", "开门时间"),
    ("几点", "几点钟"),
)

# Ways to say the same in Chinese, before synonyms and function words are looked at.
PHRASES_ZH: tuple[tuple[str, str], ...] = (
    (r"^(.+?)的?(?:方法|步骤|流程|办法)(?:是什么|有哪些|是怎样的|是怎么样的|是啥)?[?？。]*$", r"怎么\1"),
    (r"(?:的)?高度(?:是|为)?多少|有多高", "多高"),
    (r"(?:的)?长度(?:是|为)?多少|有多长", "多长"),
    (r"(?:的)?重量(?:是|为)?多少|有多重", "多重"),
    (r"(?:的)?距离(?:是|有)?多(?:少|远)|有多远", "多远"),
    (r"的?(?:价格|价钱|费用|售价)(?:是|为|要)?(?:多少|几何|怎么样|如何)?|(?:要|需要)?花?多少钱", "多少钱"),
    (r"的?(?:原因|理由)(?:是什么|有哪些|是啥)", "为什么"),
    (r"(?:的)?(?:意思|含义|定义)(?:是什么|是啥)?|是什么意思|什么叫做?|何谓", "什么是"),
    (r"(?:需要|要)?(?:花费?)?(?:多长时间|多少时间|多久时间|几天)", "多久"),
    (r"([\u4e00-\u9fff])[不没]\1", r"\1"),  # "够不够"
    (r"几月几[号日]|几[号日]", "哪天"),
    (r"十几", "十余"),
    (r"几十", "数十"),
)


# What a question asks for. Two that ask for different kinds are different questions.
QUESTION_KINDS: tuple[tuple[str, str], ...] = (
    (
        "cost",
        r"\bhow much (?:is|are|does|do|will|would|did|it)\b|\bwhat\b.*\b(?:costs?|charges?|prices?|fees?)\b|"
        r"\bprice of\b|\bcost of\b|多少钱|价格|费用|收费",
    ),
    ("how long", r"\bhow long\b|多久|多长时间"),
    ("how often", r"\bhow often\b|多久一次|频率"),
    ("how many", r"\bhow many\b|几个|多少(?!钱)"),
    ("how far", r"\bhow far\b|多远"),
    ("how tall", r"\bhow (?:tall|high)\b|多高"),
    ("how old", r"\bhow old\b|多大年纪|几岁"),
    (
        "when",
        r"(?:^|[,;.?!:] ?|\b(?:know|tell|ask|say|and|me) )when\b(?!.*,)|"
        r"\bwhen (?:do|does|did|is|are|was|were|will|can|should)\b|\bwhat (?:time|day|date)\b|"
        r"什么时候|何时|几点|哪天|什么时间",
    ),
    ("where", r"\bwhere\b|哪里|哪儿|什么地方|什么地址|什么位置"),
    ("who", r"\bwho(?:m|se)?\b|谁"),
    ("why", r"\bwhy\b|\bhow come\b|为什么|为何"),
    ("how", r"\bhow (?:do|can|to|could|should|would|does)\b|怎么(?!样)|如何"),
    (
        "whether",
        r"^(?:is|are|am|do|does|did|can|could|will|would|should|may|must|have|has)\b|吗[?？。!！ ]*$|"
        r"能不能|是不是|有没有|可不可以|是否|能否",
    ),
)

# A question about words themselves.
ABOUT_WORDS = (
    r"\b(?:say|translat\w*|spell\w*|pronounc\w*|synonyms?|antonyms?|opposite of|rhymes?|the words?|the phrase)\b|"
    r"翻译|译成|怎么说|怎么写|怎么读|怎么念|怎么拼|近义词|反义词|同义词|这个词|这句话|这个字"
)

# What the kind of a question says already, so that its words need no equal on the other side.
SAID_BY_KIND: dict[str, frozenset[str]] = {
    "cost": words("cost costs price prices fee fees charge charges"),
    "when": words("time day date"),
}

# Courtesies around a question, taken off before it is read.
COURTESIES_BEFORE = (
    r"(?:hi|hello|hey)(?: team| there| all)?", r"(?:good )?(?:morning|evening|afternoon|day)", r"dear \w+",
    r"quick (?:question|one)", r"sorry(?: to bother you)?", r"excuse me", r"please", r"pls", r"plz", r"kindly",
    r"so", r"um+", r"uh+", r"ok(?:ay)?", r"well", r"yeah", r"but",
    r"if (?:it is |it's )?(?:possible|you don't mind|that's ok(?:ay)?)",
    r"when you (?:get|have) a (?:chance|moment)",
    r"(?:can|could|would|will) (?:you|someone|anyone|somebody) (?:please |kindly |possibly )?(?:tell (?:me|us)|explain|"
    r"let me know|help me (?:understand|find out)|show me|give me)(?: to me)?",
    r"(?:would|do) you (?:happen to )?mind (?:telling me|explaining|letting me know)",
    r"(?:do you (?:happen to )?|does (?:anyone|anybody|someone) )know", r"any (?:idea|clue)(?: on| about)?",
    r"(?:i|we)(?:'d| would) (?:like|love) to (?:know|ask|find out|learn)",
    r"(?:i|we) (?:want|need) to (?:know|find out)",
    r"(?:i|we) (?:was|were|am|'m|are|'re) (?:just )?(?:wondering|curious)(?: about)?",
    r"i'm (?:just )?(?:wondering|curious)", r"i wonder",
    r"(?:just )?curious", r"quick q",
    r"would it be possible(?: for you)? to (?:tell me|explain|let me know|ask)",
    r"(?:i|we)(?:'d| would) be (?:very |really |so )?grateful if you (?:could|would) (?:tell me|explain|let me know)",
    r"would you be (?:able|so kind as) to (?:tell me|explain|let me know)",
    r"(?:i )?hope you(?:'re| are) (?:doing )?well",
    r"(?:may|might|can|could) (?:i|we) know", r"(?:i|we) (?:need|want) (?:some |your )?help (?:with|understanding)",
    r"(?:can|could|would|will) (?:you|someone|anyone) (?:please )?help me(?: with| to)?",
    r"help me (?:understand|with)",
    r"(?:please )?advise(?: me)?(?: on)?", r"please (?:can|could|would) you (?:tell me|explain|let me know)",
    r"i(?:'d| would) (?:really )?appreciate it if you could tell me", r"i have a question",
    r"(?:may|might|can|could) (?:i|we) ask(?: you)?", r"(?:please )?(?:tell|show|give) (?:me|us)(?: about)?",
    r"let me know",
    r"calculate", r"compute", r"explain", r"describe", r"define", r"list", r"name",
    r"你好", r"您好", r"嗨", r"哈喽", r"请问(?:一下)?",
    r"麻烦问一下", r"不好意思", r"打扰(?:一下|了)", r"(?:我)?想(?:请)?问(?:一下|问)?", r"请教一下",
)  # fmt: skip
COURTESIES_AFTER = (
    r"(?:many )?thanks(?: in advance| a lot| so much| you)?", r"thank you(?: so much| very much| in advance)?",
    r"please", r"pls", r"plz", r"thx", r"cheers", r"if (?:it's |it is )?(?:possible|you don't mind)",
    r"by any chance", r"(?:do )?you know", r"for me",
    r"谢谢(?:您|你|啦|了)?", r"感谢", r"多谢", r"麻烦(?:您|你)?了", r"拜托了?",
)  # fmt: skip
