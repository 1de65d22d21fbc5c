# ruff: noqa: RUF001  # Cyrillic words, dotless i and typographic apostrophes are meant
"""Which language a text is written in, guessed from its commonest small words.

Stems and stop words belong to a language. A memory can be in any, and says so itself: a handful of function
words ("the", "und", "che") is in nearly every sentence and in nearly no other language. Counting them is
exact enough for choosing a stemmer, needs no model and costs one dictionary look-up for each word.

The lists hold closed-class words only (articles, pronouns, prepositions, auxiliaries, question words): no
nouns, so nothing a person would search for is on them. `STOP_WORDS` holds them folded.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from typing import Final

_WORDS: Final[dict[str, str]] = {
    "english": """a about above after again against all also am an and any are aren't as at be because been
        before being below between both but by can can't cannot could couldn't did didn't do does doesn't doing
        don't down during each few for from further had hadn't has hasn't have haven't having he he'd he'll he's
        her here hers herself him himself his how i i'd i'll i'm i've if in into is isn't it it's its itself
        just let's me more most my myself no nor not of off on once only or other our ours ourselves out over own
        same shall she she'd she'll she's should shouldn't so some such than that that's the their theirs them
        themselves then there there's these they they'd they'll they're they've this those through to too under
        until up upon very was wasn't we we'd we'll we're we've were weren't what what's when when's where
        where's which while who who's whom whose why will with won't would wouldn't you you'd you'll you're
        you've your yours yourself""",
    "german": """aber alle allem allen aller alles als also am an andere anderen auch auf aus bei beim bin bis
        bist da damit dann das dass daß dazu dein deine dem den denn der des dessen deren dich die dies diese
        diesem diesen dieser dieses dir doch dort du durch ein eine einem einen einer eines er es etwas euch
        euer für gegen gewesen habe haben hat hatte hatten hier hinter ich ihm ihn ihnen ihr ihre ihrem ihren
        ihrer im in indem ins ist jede jedem jeden jeder jedes jene kann kannst kein keine keinem keinen keiner
        können könnte man manche mein meine meinem meinen meiner mich mir mit muss musste müssen nach nicht
        nichts noch nun nur ob oder ohne sehr sein seine seinem seinen seiner seit sich sie sind so solche soll
        sollte sondern sowie über um und uns unser unsere unter viel viele vom von vor wann war waren warum was
        weil welche welchem welchen welcher welches wem wen wenn wer werde werden wessen wie wieder will wir
        wird wirst wo wofür woher wohin wurde wurden würde würden zu zum zur zwischen""",
    "french": """ai ainsi alors as au aucun aussi autre aux avait avant avec avez avoir avons c'est car ce cela
        ces cet cette chez combien comme comment d'un d'une dans de depuis des donc dont du elle elles en entre
        est et étaient était être eux fait il ils j'ai je jusque l'on la le les leur leurs lors lui ma mais me
        même mes moi mon n'est ne nos notre nous on ont ou où par parce pas pendant peut plus pour pourquoi
        qu'est qu'il qu'elle qu'on quand que quel quelle quelles quels qui quoi sa sans se sera ses si son sont
        sous sur ta te tes toi ton tous tout toute toutes très tu un une vers vos votre vous était été""",
    "spanish": """a al algo algunos ante antes aquel aunque como cómo con contra cual cuál cuales cuáles cuando
        cuándo cuánto cuántos de del desde donde dónde durante e el él ella ellas ellos en entre era eran es esa
        esas ese eso esos esta está están estaba este esto estos fue fueron ha había han hasta hay la las le les
        lo los más me mi mis mucho muy nada ni no nos nosotros o os otra otro otros para pero poco por porque
        puede que qué quien quién quienes se sea según ser si sí sido sin sobre son su sus también tan tanto te
        tiene tienen todo todos tu tus un una unas uno unos y ya yo""",
    "italian": """a ad agli ai al alla alle allo anche ancora che chi ci come con così contro cosa cui da dagli
        dai dal dalla dalle dallo degli dei del della delle dello dentro di do dopo dove due e è ed era erano
        essere fa fra gli ha hanno ho i il in io l'ha la le lei lo loro lui ma mai me mentre mi mia mie mio molto
        nei nel nella nelle nello negli no noi non nostro o ogni oppure per perché però più poi può quale quali
        quando quanti quanto quella quelle quelli quello questa queste questi questo qui se sei si sia sono sta
        stata stato su sua sue sugli sui sul sulla sulle sullo suo suoi tra tu tua tutti tutto un una uno vi
        viene voi""",
    "portuguese": """a ao aos às aquela aquele as até com como da das de dela dele deles depois do dos e é ela
        elas ele eles em entre era eram essa esse esta está estão este eu foi foram há isso isto já lhe mais mas
        me mesmo meu minha muito na nas não nem no nos nós num numa o onde os ou para pela pelas pelo pelos por
        porque qual quais quando quanto quantos que quem são se sem ser será seu seus só sobre sua suas também
        te tem têm tinha um uma umas uns você vocês""",
    "dutch": """aan al alle als bij dan dat de deze die dit doch doen door dus een en er ge geen haar had heb
        hebben heeft hem het hier hij hoe hoeveel hun iets ik in is ja je jij jullie kan kon kunnen maar me meer
        men met mij mijn moet na naar niet niets nog nu of om omdat onder ons ook op over reeds te tegen toch
        toen tot u uit uw van veel voor waar waarom wanneer want waren was wat we wel welke werd wezen wie wij
        wil worden wordt zal ze zelf zich zij zijn zo zonder zou""",
    "swedish": """alla allt än är att av bara blev bli blir de deir dem den denna deras dess det detta dig din
        dina du efter ej eller en er ett för från ha hade han hans har hon honom hur i icke inom inte jag ju kan
        kunde man med mellan men mig min mina mot mycket när någon något några och om oss på så sedan sig sin
        sina ska skulle som till under upp ut utan vad var varför vara vem vi vid vilka vilken vilket""",
    "danish": """af alle at blev blive bliver da de dem den denne der deres det dette dig din disse du efter
        eller en end er et for fra ham han hans har havde have hende her hos hun hvad hvem hvis hvor hvorfor
        hvordan hvornår i ikke ind jeg jer jo kan kunne man mange med meget men mig min mine mit mod ned når og
        også om op os over på sig sin skal skulle som sådan til ud under var vi vil ville være været""",
    "norwegian": """alle at av bare ble bli blir da de dem den denne der deres det dette di din du eller en enn
        er et ett etter for fordi fra ha hadde han hans har hennes her hun hva hvem hvilken hvis hvor hvordan
        hvorfor i ikke inn jeg kan kunne man mange med meg men mellom min mot mye nå når noe noen og også om opp
        oss over på så seg selv sin skal skulle som til ut uten var være vært ved vi vil ville""",
    "finnish": """että ei eivät en enemmän he hän hänen ja joka jos jossa jotka kanssa koska kuin kuinka kuka
        kun me mikä miksi missä mitä mukaan mutta myös ne niin niitä nyt oli olivat olla ollut on ovat sekä
        se sen siellä siitä sillä sitä tai tämä tämän vai voi""",
    "russian": """без бы был была были было быть в вам вас во вот все всех вы где да для до его ее если есть
        еще же за здесь и из или им их к как какая какие какой когда кто ли между меня мне можно мой мы на над
        надо нас не него нее нет ни них но о об она они оно он от перед по под после потому почему при с сам со
        так также такой там то тогда того тоже только том ты у уже чего чем что чтобы эта эти это этого этой
        этом этот я""",
}

DEFAULT: Final = "english"
"""The stemmer for texts that do not say what they are: it leaves most words of other languages alone."""

GUESS_WORDS: Final = 100
"""Words that are read before deciding: a language that has not shown itself by then will not."""

_IRREGULAR: Final = """
    arise arose arisen | bear borne | beat beaten | become became | begin began begun | bend bent | bite bit
    bitten | bleed bled | blow blew blown | break broke broken | breed bred | bring brought | build built |
    burn burnt | buy bought | catch caught | choose chose chosen | cling clung | come came | creep crept |
    deal dealt | dig dug | draw drew drawn | dream dreamt | drink drank drunk | drive drove driven | eat ate
    eaten | fall fell fallen | feed fed | feel felt | fight fought | find found | flee fled | fly flew flown
    | forbid forbade forbidden | forget forgot forgotten | forgive forgave forgiven | freeze froze frozen |
    get got gotten | give gave given | go went gone | grow grew grown | hang hung | hear heard | hide hid
    hidden | hold held | keep kept | kneel knelt | know knew known | lay laid | lead led | lean leant | leap
    leapt | learn learnt | leave left | lend lent | light lit | lose lost | make made | mean meant | meet
    met | pay paid | ride rode ridden | ring rang rung | rise rose risen | run ran | say said | see saw seen
    | seek sought | sell sold | send sent | sew sewn | shake shook shaken | shine shone | shoot shot | show
    shown | shrink shrank shrunk | sing sang sung | sink sank sunk | sit sat | sleep slept | slide slid |
    speak spoke spoken | speed sped | spend spent | spin spun | spring sprang sprung | stand stood | steal
    stole stolen | stick stuck | sting stung | strike struck | strive strove striven | swear swore sworn |
    sweep swept | swell swollen | swim swam swum | swing swung | take took taken | teach taught | tear tore
    torn | tell told | think thought | throw threw thrown | understand understood | wake woke woken | wear
    wore worn | weave wove woven | weep wept | win won | withdraw withdrew withdrawn | write wrote written |
    child children | foot feet | goose geese | man men | mouse mice | tooth teeth | woman women | person
    people | life lives | wife wives | knife knives | leaf leaves | half halves | shelf shelves | thief
    thieves | wolf wolves | ox oxen | calf calves
"""


def fold(word: str) -> str:
    """A word in lower case, without accents and ligatures, as it is compared.

    >>> fold("Straße"), fold("Crème"), fold("Łódź")
    ('strasse', 'creme', 'lodz')
    """
    if word.isascii():
        return word.lower()
    decomposed = unicodedata.normalize("NFKD", word.casefold().translate(_UNDECOMPOSED))
    return "".join(char for char in decomposed if not unicodedata.combining(char))


_UNDECOMPOSED: Final = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ı": "i", "æ": "ae", "œ": "oe", "’": "'"})
"""Letters that Unicode does not take apart, though people type them without their stroke."""

STOP_WORDS: Final[dict[str, frozenset[str]]] = {
    language: frozenset(fold(word) for word in words.split()) for language, words in _WORDS.items()
}
"""Each language's small words, folded."""

LANGUAGES: Final = tuple(STOP_WORDS)

ENGLISH_FORMS: Final[dict[str, str]] = {
    form: base for base, *forms in (entry.split() for entry in _IRREGULAR.split("|")) for form in forms
}
"""Irregular English forms and what they are forms of: Snowball stems by suffix, and "went" has none of "go"."""


def _votes() -> dict[str, int]:
    votes: dict[str, int] = {}
    for number, words in enumerate(_WORDS.values()):
        for form in {form for word in words.split() for form in _spellings(word)}:
            votes[form] = votes.get(form, 0) + (1 << 8 * number)
    return votes


def _spellings(word: str) -> Iterator[str]:
    """A small word as people write it: with or without its accents, small, large or with a capital."""
    if len(word) == 1 and word.isascii():
        return  # x, y, a and i are as often symbols as words
    for plain in (word, fold(word)):
        for quoted in (plain, plain.replace("'", "’")):
            yield from (quoted, quoted.capitalize(), quoted.upper())


_VOTES: Final = _votes()
"""Small words as they are written, and the languages they belong to: one byte for each language, so that the votes of
`GUESS_WORDS` words can be added up at once."""


def guess(words: Sequence[str]) -> str | None:
    """The language whose small words are most frequent among `words`; None when no one language has most.

    >>> guess("Wann wurde die Rechnung bezahlt".split()), guess(["invoice", "12345"])
    ('german', None)
    """
    votes = sum(filter(None, map(_VOTES.get, words[:GUESS_WORDS]))).to_bytes(len(LANGUAGES), "little")
    most = max(votes)
    return LANGUAGES[votes.index(most)] if most and votes.count(most) == 1 else None


def small_words(words: Sequence[str]) -> tuple[str | None, float]:
    """The language that a text shows, and which share of its first words are small words of that language. Prose has
    some 0.4 of them in English, code and lists of names have few.

    >>> small_words("the invoice was paid by her".split()), small_words(["def", "pay", "invoice"])
    (('english', 0.6666666666666666), (None, 0.0))
    """
    language = guess(words)
    if language is None:
        return None, 0.0
    head = words[:GUESS_WORDS]
    return language, sum(fold(word) in STOP_WORDS[language] for word in head) / len(head)
