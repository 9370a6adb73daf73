"""A grammar of what raters write, in many languages and for several forms, with the rating that each text holds."""

import random
from collections.abc import Iterator
from typing import NamedTuple

from app.society.ratings import RatingForm

FORMS = (
    RatingForm(1, 7, "alignment"),
    RatingForm(1, 7, "engagement"),
    RatingForm(1, 5, "helpfulness", rating_first=False),
    RatingForm(1, 10, "alignment", rating_first=False),
    RatingForm(0, 10, "engagement"),
    RatingForm(0, 100, "honesty"),
)


class Text(NamedTuple):
    """What a rater writes, the form that was asked for, and the rating, None where there is none."""

    form: RatingForm
    text: str
    rating: float | None


class Language(NamedTuple):
    """How a language says it. `{n}` is a number, `{m}` another one, `{top}` the largest of the scale."""

    rating: str
    reason: str
    because: str
    states: tuple[str, ...]  # sentences that rate
    out_of: str
    ranges: tuple[str, ...]
    counts: str  # a sentence with a number that rates nothing
    refusal: str
    names: tuple[str, ...]  # of the numbers from 1 to 5
    zero: str = "0"  # in the digits that the language may be written with


LANGUAGES = {
    "English": Language(
        "Rating", "Reason", "it is considerate",
        ("I would give this answer a {n}.", "I'd rate it {n} out of {top}.", "My score is {n}.", "It deserves a {n}."),
        "{n} out of {top}", ("{n} to {m}", "{n} or {m}", "between {n} and {m}", "{n}, maybe {m}"),
        "It mentions {n} villages.", "I would rather give no number.", ("one", "two", "three", "four", "five"),
    ),
    "German": Language(
        "Bewertung", "Begründung", "sie ist rücksichtsvoll",
        ("Ich gebe der Antwort eine {n}.", "Ich würde sie mit {n} bewerten.", "Meine Bewertung ist {n}."),
        "{n} von {top}", ("{n} bis {m}", "{n} oder {m}", "zwischen {n} und {m}"),
        "Sie erwähnt {n} Dörfer.", "Das möchte ich nicht bewerten.", ("eins", "zwei", "drei", "vier", "fünf"),
    ),
    "French": Language(
        "Note", "Raison", "elle est prévenante",
        ("Je donne un {n} à cette réponse.", "Je lui donnerais {n} sur {top}.", "Ma note est {n}."),
        "{n} sur {top}", ("{n} ou {m}", "entre {n} et {m}"),
        "Elle cite {n} villages.", "Je préfère ne rien noter.", ("un", "deux", "trois", "quatre", "cinq"),
    ),
    "Spanish": Language(
        "Puntuación", "Razón", "es considerada",
        ("Le doy un {n} a esta respuesta.", "Yo le daría {n} de {top}.", "Mi nota es {n}."),
        "{n} sobre {top}", ("{n} o {m}", "entre {n} y {m}"),
        "Menciona {n} aldeas.", "Prefiero no puntuar.", ("uno", "dos", "tres", "cuatro", "cinco"),
    ),
    "Italian": Language(
        "Valutazione", "Motivo", "è premurosa",
        ("Darei un {n} a questa risposta.", "Il mio voto è {n}."),
        "{n} su {top}", ("{n} o {m}", "tra {n} e {m}"),
        "Cita {n} villaggi.", "Preferisco non valutare.", ("uno", "due", "tre", "quattro", "cinque"),
    ),
    "Portuguese": Language(
        "Avaliação", "Motivo", "é atenciosa",
        ("Eu daria {n} para esta resposta.", "Minha nota é {n}."),
        "{n} de {top}", ("{n} ou {m}", "entre {n} e {m}"),
        "Cita {n} aldeias.", "Prefiro não avaliar.", ("um", "dois", "três", "quatro", "cinco"),
    ),
    "Dutch": Language(
        "Beoordeling", "Reden", "het is attent",
        ("Ik geef dit antwoord een {n}.", "Mijn beoordeling is {n}."),
        "{n} van de {top}", ("{n} tot {m}", "tussen {n} en {m}"),
        "Het noemt {n} dorpen.", "Ik beoordeel dit liever niet.", ("een", "twee", "drie", "vier", "vijf"),
    ),
    "Polish": Language(
        "Ocena", "Uzasadnienie", "jest życzliwa",
        ("Daję tej odpowiedzi {n}.", "Moja ocena to {n}."),
        "{n} z {top}", ("{n} lub {m}", "od {n} do {m}"),
        "Wymienia {n} wsi.", "Wolę nie oceniać.", ("jeden", "dwa", "trzy", "cztery", "pięć"),
    ),
    "Russian": Language(
        "Оценка", "Причина", "ответ вежлив",
        ("Я ставлю этому ответу {n}.", "Моя оценка: {n}."),
        "{n} из {top}", ("{n} или {m}", "от {n} до {m}"),
        "Названы {n} деревни.", "Предпочту не оценивать.", ("один", "два", "три", "четыре", "пять"),
    ),
    "Turkish": Language(
        "Puan", "Gerekçe", "düşünceli",
        ("Bu cevaba {n} veriyorum.", "Puanım: {n}."),
        "{top} üzerinden {n}", ("{n} veya {m}",),
        "{n} köyden söz ediyor.", "Puan vermek istemiyorum.", ("bir", "iki", "üç", "dört", "beş"),
    ),
    "Chinese": Language(
        "评分", "理由", "很体贴",
        ("我给这个回答{n}分。", "我的评分是{n}。"),
        "{n}/{top}", ("{n}到{m}", "{n}或{m}"),
        "它提到了{n}个村庄。", "我不想打分。", ("一", "二", "三", "四", "五"),
    ),
    "Japanese": Language(
        "評価", "理由", "思いやりがあります",
        ("この回答には{n}点をつけます。", "私の評価は{n}です。"),
        "{top}点満点中{n}点", ("{n}から{m}", "{n}か{m}"),
        "村が{n}つ出てきます。", "評価は控えます。", ("一", "二", "三", "四", "五"),
    ),
    "Korean": Language(
        "평점", "이유", "배려가 있습니다",
        ("이 답변에 {n}점을 주겠습니다.", "제 평점은 {n}점입니다."),
        "{top}점 만점에 {n}점", ("{n}에서 {m}", "{n} 또는 {m}"),
        "마을 {n}개가 나옵니다.", "평가하지 않겠습니다.", ("하나", "둘", "셋", "넷", "다섯"),
    ),
    "Arabic": Language(
        "التقييم", "السبب", "الإجابة لطيفة",
        ("أعطي هذه الإجابة {n}.", "تقييمي هو {n}."),
        "{n} من {top}", ("{n} أو {m}", "بين {n} و {m}"),
        "تذكر {n} قرى.", "أفضل عدم التقييم.", ("واحد", "اثنان", "ثلاثة", "أربعة", "خمسة"), "٠",
    ),
    "Hindi": Language(
        "रेटिंग", "कारण", "उत्तर विनम्र है",
        ("मैं इस उत्तर को {n} दूँगा।", "मेरी रेटिंग {n} है।"),
        "{top} में से {n}", ("{n} या {m}",),
        "इसमें {n} गाँव हैं।", "मैं रेटिंग नहीं दूँगा।", ("एक", "दो", "तीन", "चार", "पाँच"), "०",
    ),
}  # fmt: skip

# Labels of ratings and of reasons, in further languages.
LABELS = {
    "Vietnamese": (("Đánh giá", "Lý do"), ("Điểm số", "Giải thích"), ("Xếp hạng", "Lý do")),
    "Indonesian": (("Penilaian", "Alasan"), ("Nilai", "Penjelasan"), ("Peringkat", "Alasan")),
    "Thai": (("คะแนน", "เหตุผล"), ("การให้คะแนน", "คำอธิบาย")),
    "Ukrainian": (("Оцінка", "Обґрунтування"), ("Бал", "Пояснення")),
    "Finnish": (("Arvosana", "Perustelu"), ("Arvio", "Syy"), ("Pisteet", "Selitys")),
    "Hungarian": (("Értékelés", "Indoklás"), ("Pontszám", "Magyarázat")),
    "Greek": (("Βαθμολογία", "Αιτιολογία"), ("Αξιολόγηση", "Λόγος"), ("Βαθμός", "Εξήγηση")),
    "Hebrew": (("דירוג", "סיבה"), ("ציון", "נימוק"), ("הערכה", "הסבר")),
    "Persian": (("امتیاز", "دلیل"), ("نمره", "توضیح"), ("ارزیابی", "علت")),
    "Swedish": (("Betyg", "Anledning"), ("Omdöme", "Skäl"), ("Poäng", "Förklaring")),
    "Danish": (("Vurdering", "Begrundelse"), ("Bedømmelse", "Årsag")),
    "Norwegian": (("Karakter", "Begrunnelse"), ("Vurdering", "Forklaring")),
    "Czech": (("Hodnocení", "Důvod"), ("Známka", "Zdůvodnění"), ("Skóre", "Vysvětlení")),
    "Slovak": (("Hodnotenie", "Dôvod"), ("Hodnotenie", "Odôvodnenie")),
    "Romanian": (("Evaluare", "Motiv"), ("Notă", "Justificare"), ("Punctaj", "Explicație")),
    "Bulgarian": (("Оценка", "Обосновка"), ("Рейтинг", "Обяснение")),
    "Croatian": (("Ocjena", "Razlog"), ("Ocjena", "Obrazloženje")),
    "Catalan": (("Puntuació", "Motiu"), ("Valoració", "Raó")),
    "Bengali": (("মূল্যায়ন", "কারণ"), ("রেটিং", "ব্যাখ্যা")),
    "Urdu": (("درجہ بندی", "وجہ"), ("ریٹنگ", "وضاحت")),
    "Tamil": (("மதிப்பீடு", "காரணம்"),),
    "Tagalog": (("Marka", "Dahilan"),),
}

_SEPARATORS = (": ", ":", " = ", " - ", " – ", " → ", ":\n", "：")
_AROUND = ("{}", "**{}**", "__{}__", "[{}]", "({})", "`{}`", '"{}"', "~{}", "<{}>", "{{{}}}")
_OTHER_ASPECTS = ("Politeness", "Clarity", "Tone", "Accuracy")


def texts(seed: int = 0) -> Iterator[Text]:
    """The texts, the same for the same seed."""
    rng = random.Random(f"ratings {seed}")
    for form in FORMS:
        for name, language in LANGUAGES.items():
            yield from (Text(form, text, rating) for text, rating in _rated(rng, form, language))
            yield from (Text(form, text, None) for text in _unrated(rng, form, language))
            if name == "English":
                for _ in range(4):
                    yield from (Text(form, text, rating) for text, rating in _written_by_programs(rng, form))
                    yield from (Text(form, text, rating) for text, rating in _corrected(rng, form))
                    yield from (Text(form, text, None) for text in _of_something_else(rng, form))


def labelled(rating: str, reason: str) -> Iterator[tuple[str, float | None]]:
    """Texts with a language's labels, and the rating from 1 to 7 that each holds."""
    yield f"{rating}: 5 ### {reason}: a 3 b.", 5
    yield f"**{rating}:** 2/7\n\n**{reason}:** 3 a b.", 2
    yield f"{rating}: 6\n{reason}: a.\n\nXyz {rating.lower()}: 4 b.", 6
    yield f"{reason}: a 3 b.\n{rating}: 4", 4
    yield f"4 ### {reason}: a 3 b.", 4
    yield f"{rating}: 8/10\n{reason}: a.", None
    yield f"{rating}: 3-4\n{reason}: a.", None
    yield f"{reason}: a 3 b.", None


def _number(rng: random.Random, form: RatingForm) -> int:
    return rng.randint(form.low + 1, form.high - 1)


def _digits(number: int, zero: str) -> str:
    return "".join(chr(ord(zero) + int(digit)) for digit in str(number))


def _in_order(form: RatingForm, rating: str, reason: str) -> str:
    return f"{rating}\n{reason}" if form.rating_first else f"{reason}\n{rating}"


def _rated(rng: random.Random, form: RatingForm, language: Language) -> Iterator[tuple[str, float]]:
    number = _number(rng, form)
    shown = _digits(number, rng.choice(("0", language.zero, "０")))
    reason = f"{language.reason}: {language.because}"
    separator, around = rng.choice(_SEPARATORS), rng.choice(_AROUND)
    yield _in_order(form, f"{language.rating}{separator}{around.format(shown)}", reason), number
    yield rng.choice(language.states).format(n=shown, top=form.high), number
    yield language.out_of.format(n=shown, top=_digits(form.high, language.zero)), number
    named = rng.randint(max(2, form.low), 4)
    yield _in_order(form, f"{language.rating}: {language.names[named - 1]}", reason), named
    half = rng.randint(form.low, form.high - 1)
    yield _in_order(form, f"{language.rating}: {half}{rng.choice(('.5', ',5', '½', ' 1/2'))}", reason), half + 0.5


def _unrated(rng: random.Random, form: RatingForm, language: Language) -> Iterator[str]:
    number = rng.randint(form.low, form.high - 2)
    words = {"n": _digits(number, language.zero), "m": _digits(number + 1, language.zero)}
    reason = f"{language.reason}: {language.because}"
    yield _in_order(form, f"{language.rating}: {rng.choice(language.ranges).format(**words)}", reason)
    yield rng.choice(language.ranges).format(**words)
    yield language.out_of.format(n=number, top=form.high + rng.choice((1, 2, 13)))
    yield _in_order(form, f"{language.rating}: {form.high + rng.randint(1, 30)}", reason)
    yield language.counts.format(n=words["m"])
    yield language.refusal
    yield _in_order(form, f"{language.rating}: {number}/{form.high + 3}", reason)
    yield f"{language.reason}: {language.because}"


def _written_by_programs(rng: random.Random, form: RatingForm) -> Iterator[tuple[str, float]]:
    number, other, (first, second) = _number(rng, form), rng.randint(form.low, form.high), rng.sample(_OTHER_ASPECTS, 2)
    aspect = form.aspect
    yield f'{{"rating": {number}, "reason": "A rating of {other} would be wrong"}}', number
    yield f'```json\n{{"{first.lower()}": {other}, "{aspect}": {number}}}\n```', number
    yield f'{{"{aspect}": {{"score": "{number}/{form.high}"}}, "{second.lower()}": {{"score": {other}}}}}', number
    yield f"| Aspect | Score |\n|---|---|\n| {first} | {other} |\n| {aspect.title()} | {number} |", number
    yield f"| {aspect} | {second} |\n|---|---|\n| {number} | {other} |", number
    yield f"{first}: {other}, {aspect.title()}: {number}, {second}: {other}", number
    yield f"<reason>plain</reason>\n<rating>{number}</rating>", number
    yield f"It is plain.\n\n$\\boxed{{{number}}}$", number
    yield f"<think>Rating: {other}, or so? Let me see.</think>\nRating: {number}", number
    yield f"## {first}\nRating: {other}\n\n## {aspect.title()}\nRating: {number}", number
    yield f"{aspect.title()} score ({form.low}-{form.high}): {number}", number
    yield f"On a scale of {form.low} to {form.high}, I would rate this a {number}.", number


def _corrected(rng: random.Random, form: RatingForm) -> Iterator[tuple[str, float]]:
    number, other = _number(rng, form), rng.randint(form.low, form.high)
    yield f"At first I would have said {other}, but on reflection I'd give it a {number}.", number
    yield f"Rating: {other}\nHmm, on second thought that is wrong.\nRating: {number}", number
    yield f"Initial rating: {other}\nFinal rating: {number}", number
    yield f"Final rating: {number}\n(Preliminary rating: {other})", number
    yield f"Rating: {number}\nReason: Rating: {other} would be unfair.", number
    yield f"Rating: {number}. The average rating: {other}", number
    yield f"Rating: {other}, no, {number}", number


def _of_something_else(rng: random.Random, form: RatingForm) -> Iterator[str]:
    number, other = _number(rng, form), rng.randint(form.low, form.high)
    first, second = rng.sample(_OTHER_ASPECTS, 2)
    yield f"{first}: {number}\n{second}: {other}"
    yield f"Answer A: {number}\nAnswer B: {other}"
    yield f"The other critics gave it a {number}."
    yield f"Rate it from {form.low} (not at all) to {form.high} (perfectly)."
    yield f"Score: {number} stars"
    yield f"Rating: {number}%"
    yield f"Rating: {number} (1 = awful, {form.high + 3} = superb)"
    yield f"On a scale of 1 to {form.high + 5}, I'd give it a {number}."
    yield f"Rating: somewhere around {number}"
    yield f"I would give it a {number} if it were kinder."
    yield f"I would not give it a {number}."
    yield f"It was posted on {1 + number % 12}/{1 + other % 28}/2021."
    yield f"1. It is curt.\n2. It is vague.\n{number}. It is late."
    yield f"Rating: {number} or higher"
    yield f"<think>I will say {number}.</think>"
    yield f"Give it {number} more weeks."
