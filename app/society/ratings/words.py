"""The words that distinguish a rating from other numbers, in the languages in which models answer. Pure.

A word has roles. A word that ends with `*` stands for all words that begin with it. Words of scripts that are written
without spaces, or with endings joined to the word, are found within a run of text; see `text.py`.
"""

import unicodedata
from collections.abc import Mapping
from functools import lru_cache

from app.society.config import ALIGNMENT, ENGAGEMENT

RATING, ASPECT, GENERAL, REASON = "rating", "aspect", "general", "reason"
FINAL, EARLIER, OTHERS, NOT, IF = "final", "earlier", "others", "not", "if"
VERB, OWN_VERB, LATE_VERB, LATE_IS, DESERVES = "verb", "own verb", "late verb", "late is", "deserves"
FIRST_PERSON, ANSWER = "first person", "answer"
IS, FILLER, BOUND, NEUTRAL, FOLLOWER = "is", "filler", "bound", "neutral", "follower"
POINTS, OUT_OF, RANGE, MAYBE, UNIT, HALF = "points", "out of", "range", "maybe", "unit", "half"
OF_WHAT, DECIMAL, TAKEN_BACK, JOIN, LARGEST, ME = "of what", "decimal", "taken back", "join", "largest", "me"
MANNER, RATER, MODAL, STARS, WHEN, OWN, TIME = "manner", "rater", "modal", "stars", "when", "own", "time"
OTHER_SENSE = "other sense"
SCALE, REFUSAL, PERSONAL = "scale", "refusal", "personal"
CONCEDED, BETWEEN = "conceded", "between"

# Before a number: the words of a label ("my rating of this answer").
_ROLES: Mapping[str, str] = {
    RATING: """
        vote rating ratings score scores grade mark evaluation assessment rate points bewertung* note punktzahl
        punkte punktwert wertung gesamtbewertung gesamtnote einschatzung einstufung urteil evaluation* notation
        cote appreciation puntuacion calificacion valoracion puntaje puntos nota evaluacion punteggio voto
        valutazione giudizio avaliacao pontuacao classificacao beoordeling cijfer waardering ocena ocene ocenie
        oceny wynik punktacja оценк* балл* рейтинг* оцінк* puan* derecelendirme* degerlendirme* skor* 评分 得分
        分数 打分 评级 評分 評級 分數 給分 给分 评价 評價 評価 点数 スコア 評点 採点 得点 評定 レーティング 평점
        점수 평가 등급 별점 التقييم تقييم تقييمي الدرجة درجة درجتي النتيجة التصنيف रेटिंग अंक स्कोर मूल्यांकन मूल्याङ्कन
        श्रेणी betyg omdome bedommelse karakter vurdering arvosana pisteet hodnoceni znamka hodnotenie evaluare
        ertekeles pontszam βαθμολογια αξιολογηση דירוג ציון امتیاز نمره رتبه điểm diem peringkat penilaian nilai
        คะแนน đánh chấm xếp evaluasi การให้คะแนน ระดับคะแนน การประเมิน ประเมิน เรตติ้ง бал arvosanan arvosanani
        arvio arviointi pistemaara ertekelesem osztalyzat minosites βαθμος βαθμο βαθμολογηση הדירוג הציון הערכה
        הערכתי ارزیابی poäng bedömning värdering bedømmelse vurderingen karakteren skore punctaj scor
        calificativ ocjena оцена оцін* puntuacio valoracio qualificacio মূল্যায়ন রেটিং স্কোর மதிப்பீடு
        மதிப்பெண் درجہ بندی ریٹنگ اسکور marka iskor vertinimas ivertinimas hinnang hinne vertejums
    """,
    GENERAL: """
        opinion view meinung ansicht avis opinione opiniao mening zdaniem мнению 看来 意見 insgesamt globale
        reflection overall answer result verdict conclusion total end number value correction update edit boxed
        output decision gesamt gesamturteil ergebnis antwort fazit global general resultat resultado risultato
        complessivo reponse respuesta risposta resposta resultaat totaal antwoord eindoordeel wynik ogolnie
        odpowiedz итог* результат* ответ общ* sonuc genel toplam cevap 总体 综合 整体 總體 綜合 综合得分 总分 总评
        結果 结果 答案 回答 総合 総評 결과 총점 종합 답변 النتيجة الإجابة المجموع परिणाम कुल उत्तर
    """,
    REASON: """
        reason* explanation rationale justification feedback comment comments because why grund begrundung
        erklarung raison motif explication razon motivo justificacion explicacion motivazione ragione
        spiegazione razao justificativa explicacao reden toelichting uitleg motivatie uzasadnienie powod
        wyjasnienie причина обоснование пояснение объяснение sebep neden gerekce aciklama 理由 原因 解释 解釋 说明
        說明 根拠 説明 이유 근거 설명 السبب سبب التبرير التعليل कारण वजह स्पष्टीकरण motivering anledning begrundelse
        begrunnelse oduvodneni обґрунтування دلیل alasan lý giải penjelasan keterangan justifikasi pembenaran
        sebab เหตุผล คำอธิบาย пояснення підстава аргументация perustelu perustelut syy selitys indoklas indok
        magyarazat αιτιολογια αιτιολογηση λογος εξηγηση δικαιολογηση סיבה הסיבה נימוק הנימוק הסבר توضیح علت
        توجیه وجہ وضاحت skäl förklaring orsak årsag forklaring årsak grunn duvod zduvodneni vysvetleni dovod
        odovodnenie zdovodnenie vysvetlenie motiv motivul justificare explicatie motivare motivatia обосновка
        обяснение разлог образложење razlog obrazlozenje objasnjenje utemeljitev pojasnilo motiu rao কারণ
        ব্যাখ্যা காரணம் விளக்கம் dahilan paliwanag priezastis pohjus pohjendus pamatojums iemesls
    """,
    FINAL: """
        final finally definitive ultimately overall settled correction update edit revised corrected updated
        adjusted new endgultig* abschliessend* schliesslich endnote endbewertung gesamtbewertung finale
        definitif definitivo definitiva eindoordeel eindcijfer definitieve koncow* ostateczn* итогов*
        окончательн* nihai 最终 最終 最终评分 总评 총평 최종 النهائي النهائية نهائي अंतिम boxed finalement
        finalmente slutlig* endelig*
    """,
    EARLIER: """
        wanted planned meant wollte voulais queria volevo wilde chcialem хотел istedim initial initially first
        originally original preliminary previous previously earlier former tentative old prior provisional
        almost nearly tempted draft example hypothetical maximum minimum max min highest lowest zuerst anfangs
        anfanglich* ursprunglich* erste erster vorlaufig* d'abord initialement premiere premier initiale primero
        inicialmente primera inicial principio prima inizialmente inizio primeiro eerst aanvankelijk eerste
        najpierw poczatkowo pierwsz* сначала первоначальн* изначальн* перв* önce ilk 起初 最初 原本 初始 一开始
        当初 初めは 처음 처음에는 초기 أولا البداية الأولي पहले शुरू प्रारंभिक
    """,
    OTHERS: """
        average mean median others other's other people someone somebody anyone nobody everyone everybody they
        their he she his her your you user users user's users' critic critics critic's critics' rater raters
        reviewer reviewers judge judges annotator annotators expert experts teacher crowd most many some readers
        reader author evaluator evaluators observers observer participants colleague colleagues friend threshold
        baseline durchschnitt* andere anderen nutzer kritiker jemand moyenne autres critiques utilisateur*
        promedio media otros demas usuarios usuario altri utenti critici outros gemiddelde gebruikers inni
        srednia средн* друг* другие пользовател* критик* ortalama digerleri kullanicilar 平均 其他 别人 他人 用户
        有人 ほかの 他の ユーザー 다른 평균 사용자 متوسط الآخرون آخرون المستخدم औसत दूसरों अन्य लोगों
    """,
    FIRST_PERSON: """
        i i'd i'm i'll i've we we'd ich wir je j' yo me mir moi mim mij io eu ik ja я мы ben 我 私 僕 저는 나는
        제가 내가 أنا मैं מני jag mein meine personally tôi saya ฉัน ผม jeg
    """,
    VERB: """
        decided decide land landed mets mettrais rate rates rating rated give gives gave giving score scores
        scored grade assign assigning award awarding say call put choose chose pick going settle settled
        settling go went lean deserves deserve earns earn gets get merits merit receives receive warrants
        warrant think consider make mark bewerte bewerten gebe geben vergebe wurde sage verdient erhalt bekommt
        donne donnerais donner attribue attribuerais note noterais dirais merite obtient evalue da daria merece
        obtiene puntua diria merita ottiene valuto direi obtem vale geef geven zou zeggen krijgt beoordeel
        ocenilbym daje zasluguje dostaje ставлю оцениваю заслуживает получает 给 給 打 得 值 值得 获得 獲得 评 評
        给出 打分为 評分為 评为 判 付け 주 أعطي أقيم أمنح تستحق يستحق सैकता ger dam chấm beri memberi ให้ ให้คะแนน
    """,
    # Verbs with the answer as their subject.
    DESERVES: """
        deserves deserve earns earn gets get merits merit receives receive warrants warrant scores score
        verdient erhalt bekommt merite obtient merece obtiene merita ottiene obtem vale krijgt zasluguje dostaje
        заслуживает получает 得 值 值得 获得 獲得 تستحق يستحق
    """,
    # Verbs whose form already tells who speaks.
    OWN_VERB: """
        assegnerei avaliaria assegno gebe vergebe bewerte geef pondria doy daria asigno califico otorgo valoro
        puntuo darei valuterei direi valuto diria dou avalio atribuo oceniam daje dalbym dalabym ocenilbym
        ocenilabym przyznaje stawiam ставлю оцениваю даю поставил поставила поставлю дал дала дам присваиваю
        выставляю выставлю присвоил оценил оценила оценю veriyorum veririm verirdim puanliyorum
        derecelendiriyorum degerlendiriyorum أعطي أقيم أمنح سأعطي أعطيها أقيمها سأمنح wystawiam annan
        adok värderar ger βαζω δινω βαθμολογω נותן נותנת מדרג מדרגת میدهم оцінюю hodnotim davam
        acord evaluez beri memberi giver gir vurderer
    """,
    # Verbs that follow the number.
    LATE_VERB: """
        bewerten geben vergeben veriyorum veririm verirdim verecegim puanliyorum puandir aliyor
        degerlendiriyorum つけます つける 付けます 付ける 与えます 与える とします とする と評価します と評価する
        と評価 をつけ 付けたい つけたい 評価します 採点します 주겠습니다 줍니다 주고 드립니다 드리겠습니다
        매깁니다 매기겠습니다 부여합니다 평가합니다 평가하겠습니다 생각합니다 줄게요 दूँगा दूंगा देता देती दूँगी दूंगी देना
        देंगे geven toekennen einstufen می‌دهم میدهم
    """,
    LATE_IS: "です でした だ である だと思います 입니다 이다 예요 이에요 हैं है dir dur",
    ANSWER: """
        das dies esto isto questo dit het الجواب इसे это answer response reply revision text message content it
        this that one these assistant assistant's model's antwort reponse respuesta risposta resposta antwoord
        odpowiedz odpowiedzi ответ ответу ответа cevap cevaba cevabi cevabin yanit yaniti yanita 回答 答案 回复
        答复 回應 応答 返答 답변 대답 응답 الإجابة إجابة الرد उत्तर जवाब svar svaret sagot jawaban
    """,
    IS: """
        is are be equals stands at comes lautet ist ware betragt liegt est serait es seria e sarebe sarebbe
        bedraagt jest to это равна равен 是 为 為 は 은 는 が 이 가 هو هي है är er je
    """,
    FILLER: """
        so donc quindi also easy generous weak respectable therefore com bence a an the about around roughly
        approximately approx probably solid strong clear firm full decent fair good well as at of to with by in
        for be just only exactly thus hence simply rather ein eine einen einer etwa ungefahr ca circa rund wohl
        mit auf als von bei un une uno una environ de d' au à comme di um uma cerca aproximadamente een ongeveer
        met na okolo около примерно на в yaklasik 大约 约 大概 約 およそ 약 حوالي تقريبا लगभग को का points nota
        note rating score grade value number evaluation puntuacion calificacion voto cijfer ocene оценку puntaje
        punteggio bewertung wertung الدرجة درجة में に を で 点 分 điểm คะแนน
    """,
    BOUND: """
        than least most above below under over beyond between minimum maximum upto more less fewer higher lower
        exceed exceeds exceeding short somewhere anywhere nearer closer neighborhood neighbourhood vicinity near
        mindestens hochstens weniger mehr zwischen unter uber irgendwo moins plus entre menos mas mais meno piu
        tra fra tussen minder meer minstens hoogstens miedzy mniej wiecej между менее более меньше больше
        минимум arasinda 至少 最多 低于 高于 少于 多于 之间 以上 以下 未満 이상 이하 사이 بين أقل أكثر बीच
        approaching toward towards
    """,
    NEUTRAL: """
        sie es ihr ihm ihn hem haar ją je
        verdigim vermis meiner nach selon segun secondo segundo gibt es love gladly keep इसे इसको my our your's
        me mine myself own current numeric numerical number value values this these those given here now so then
        thus and but or also too would could should will shall can might must do does did have has had be been
        being was were am on in to of for from by with at as into per out how much what which that's it's its
        i'd say think consider considered believe feel honestly clearly quite very alignment's well fits fit
        shared human society people's social ai assistant model bot generated above following provided criterion
        aspect aspects dimension category name label metric scale everything all things whole long run end light
        view opinion judgment judgement mind therefore accordingly based reflection thought thoughts
        reconsideration reconsidering rereading reading actually wait scratch instead considering weighing
        balance careful still let's let us it'd i'm inclined like go going talk talking want continue
        conversation chatting whoever answered person lands comfortable happy confident sure okay ok yes hmm
        however though although yet because since forced pressed choose pick asked need needed seems feels
        appropriate right fair deserving solidly just again final das der die den dem des dieser diese dieses
        diesem fur zur zum im und aber auf skala hier insgesamt daher deshalb ansicht hinsichtlich mein meine
        meinem unsere wurde doch uberlegung le la les c' s' qu' m' t' cette ce ces cet pour du et mais donc mon
        ma notre sur l' d' cela ca lui y en reflexion faite el los las esta este esto para por del al pero mi
        mis nuestro yo lo conjunto il gli questa questo della dell' alla e mia mio nostro a o os essa esse da na
        no ao mas minha meu nossa eu de het dit deze voor aan maar mijn onze dat ta ten tej te dla tę za i ale
        moja moje mojej нa этот эту этому этого для за и но моя мой мою бы это bu bir icin ve ama benim su olan
        cevap 这个 這個 这 這 该 該 本 此 的 我 我的 我会 我會 会 會 对 對 为 在 因此 所以 综上 分 与 和 最后 一下
        了 就 应该 可以 个 這裡 この その これ それ の に は を で が も と て 私の 私は 私なら なら として 対する
        対して ため 이 그 저 저의 나의 제 를 을 에 에게 에는 의 은 는 도 로 으로 대한 대해 위한 것 هذه هذا ل على
        في من إلى الرد لهذه لهذا مع و أن هو هي इस यह को के की का लिए मेरी मेरा मेरे में और से पर detta det min
        mitt till av och att giá hạng số của tôi cho câu trả lời này ini jawaban saya ฉัน ผม ให้ ของ คำตอบ นี้
        це цій цю відповідь відповіді tama tämä tälle vastaukselle minun tanan ezt ennek valasznak az erre
        valaszra ez την σε αυτη η απαντηση μου ειναι στην αυτην τη לתשובה הזו התשובה שלי הוא את זה این پاسخ را
        به است آن jag svaret denna denne dette svar odpovedi teto tuto acestui acestei raspuns mea îi nilai
        สามารถ kasih
    """,
    # What may follow the number in a sentence that rates.
    FOLLOWER: """
        van because since for as due on from to overall reason here based given considering but and in thanks
        although though while where which so that after points yet if when weil da fur denn wegen aber und
        insgesamt obwohl car parce pour puisque mais et en porque pues por para pero y ya dado perche poiche per
        ma e pois mas want omdat voor maar bo poniewaz gdyz za ale i потому так поскольку за но и cunku zira ama
        ve icin 因为 因為 由于 由於 但 但是 。 ので から ため 때문 왜냐하면 لأن لأنها لأنه حيث क्योंकि dlatego
        eftersom fordi a al alla alle à an au dla dit dieser diese auf this it лучше этому
    """,
    POINTS: """
        points point pts punkte punkten punkt puntos punto punti pontos ponto punten punktow punkty puan балл
        балла баллов бал балів 分 点 點 점 نقاط نقطة درجات درجة अंक अंकों poang điểm คะแนน pistetta pont βαθμους
        נקודות امتیاز poin poäng
    """,
    OUT_OF: "na of من von sur sobre de su di em op uit van z из з av trên out از dari",
    OF_WHAT: """
        for on in regarding concerning terms of the its fur bei der die das pour en sur la l' para por per voor
        op dla za için على في ل
    """,
    RANGE: """
        to or and through till bis oder und à a ou o e ed y u tot of lub do до или и ve veya ila 至 到 或 或者
        から か 또는 에서 أو إلى या से vagy או
    """,
    # After the second number of a range.
    BETWEEN: "arasi arasinda 间 間 之间 之間 の間 사이 बीच kozott valilta valilla kozotti",
    MAYBE: """
        maybe perhaps possibly possible potentially could might either vielleicht moglich* moglicherweise peut
        quiza quizas talvez posible forse magari possibile misschien mogelijk moze возможно может belki 可能 也许
        也許 或许 かも かもしれ たぶん 아마 ربما शायद kanske
    """,
    UNIT: """
        plus minus percent percentage prozent pourcent porcentaje stars star sterne stern etoiles estrellas
        estrella stelle estrelas sterren gwiazdki gwiazdek звезд звезды yildiz 星 颗星 顆星 つ星 별 نجوم نجمة
        सितारे minutes minute hours hour days day weeks week months years year seconds times words sentences
        examples reasons facts people users critics concerns issues problems questions steps criteria dollars
        euros options things items errors mistakes paragraphs lines tips sources claims others answers responses
        aspects parts minuten stunden tage jahre grunde fehler beispiele minutos horas dias razones ejemplos
        raisons exemples 个 個 条 條 名 位 次 年 月 日 天 人 件 つ 回 개 명 가지 번 년 월 일 种 項 项 本 页
    """,
    SCALE: """
        scale scales skala skalen echelle escala scala schaal skali skale шкал* olcek* olceg* 量表 尺度 段階
        スケール 척도 مقياس पैमाने likert range spectrum skalan
    """,
    NOT: """
        not never cannot can't don't won't wouldn't doesn't didn't isn't couldn't shouldn't hardly nor neither
        without nicht kein keine keinen nie niemals pas jamais ne aucune non no nunca jamas mai nao niet geen не
        нельзя ни degil vermem vermiyorum n' 不 没 沒 不会 不能 无法 ない ません 않 못 안 لا لن لم ليس नहीं ikke
        inte aren't wasn't haven't hasn't refuse decline
    """,
    IF: """
        if unless whether were otherwise wenn falls si indien jesli gdyby если eger 如果 若 もし 만약 إذا لو यदि
        अगर every each provided providing depending depends depend dependiendo depende dipende dependendo
        als jesli jezeli якщо jos ha עם אם اگر om hvis dersom pokud jestlize daca nếu neu jika kalau
    """,
    # After "if", words that make it mean "though": "5, if a bit curt".
    CONCEDED: "a an not only just slightly somewhat rather auch un anything perhaps",
    PERSONAL: "had forced pressed must asked pushed compelled absolutely having required",
    REFUSAL: """
        n/a na none null nil unknown undefined cannot can't unable refuse decline refused declined inapplicable
        skipped pass abstain abstained withheld not no insufficient unrated unratable keine kein nicht entfallt
        aucune non ninguna ningun nessuno nessuna nenhuma geen brak нет yok 无 無 无法 なし 없음 لا नहीं unclear
        undecided indeterminate tbd pending
    """,
    OTHER_SENSE: "note nota points mark grade cote",
    JOIN: """
        and a und y et e en een i с ve 点 分 점 but an even eine un une una the ein nearly almost
    """,
    LARGEST: "a the possible maximum max total of los las den de la insgesamt maximal van um un",
    ME: "me mir moi mi mij mim",
    OWN: "my the meine ma mi il minha mijn moja",
    MANNER: "honest fair clear safe",
    RATER: "human model ai assistant bot society people's",
    MODAL: "could might may konnte pourrait podria potrebbe poderia",
    STARS: "stars star sterne sternen etoiles estrellas stelle",
    WHEN: "was war etait era fue foi before vorher avant antes prima after",
    TIME: "on by since until am le el in",
    DECIMAL: "point komma coma virgule virgola virgula przecinek запятая 点 점",
    TAKEN_BACK: """
        sorry oops rather no wait actually make scratch instead correction nein korrektur eigentlich non pardon
        perdon scusa anzi corrijo nee нет точнее yok 不 不对 更正 いや 訂正 아니 정정 عفوا बल्कि
    """,
    HALF: """
        half halb halbe medio media demi mezzo meio halve pol половиной половина bucuk 半 반 ونصف نصف आधा साढ़े
    """,
}  # fmt: skip

# Aspects by the names that models give them. An aspect requested under another name is known by that name alone.
ASPECTS: Mapping[str, str] = {
    ALIGNMENT: """
        alignment aligned align ausrichtung ubereinstimmung wertekonformitat alignement alineacion alineamiento
        allineamento alinhamento afstemming zgodnosc dopasowanie соответствие выравнивание согласованность uyum
        uyumluluk hizalama 对齐 對齊 一致性 契合度 价值观一致 アラインメント アライメント 整合性 정렬 부합도
        일치도 المواءمة التوافق الاتساق مواءمة संरेखण अनुरूपता सामंजस्य
    """,
    ENGAGEMENT: """
        engagement engaging talking conversation gesprach engagiertheit gesprachsbereitschaft interaktion
        participation compromiso implicacion participacion coinvolgimento engajamento envolvimento betrokkenheid
        zaangazowanie вовлеченность вовлечённость заинтересованность etkilesim katilim baglilik 参与度 參與度
        互动性 投入度 吸引力 エンゲージメント 関与度 참여도 몰입도 التفاعل المشاركة التفاعلية सहभागिता जुड़ाव
    """,
    "helpfulness": """
        helpfulness helpful help hilfsbereitschaft nutzlichkeit utilite utilidad utilita utilidade
        behulpzaamheid nuttigheid przydatnosc полезность yardimseverlik yararlilik faydalilik 有用性 有帮助 有益性
        役立ち度 유용성 도움 الفائدة المساعدة उपयोगिता सहायकता
    """,
    "harmlessness": """
        harmlessness harmless harm safety safe sicherheit harmlosigkeit unschadlichkeit securite innocuite
        seguridad inocuidad sicurezza innocuita seguranca veiligheid bezpieczenstwo безопасность безвредность
        guvenlik zararsizlik 安全性 无害性 無害性 안전성 무해성 السلامة الأمان सुरक्षा
    """,
    "honesty": """
        honesty honest truthfulness ehrlichkeit honnetete honestidad onesta honestidade eerlijkheid uczciwosc
        честность durustluk 诚实 诚实性 誠実 誠実さ 정직성 الصدق الأمانة ईमानदारी
    """,
    "fairness": """
        fairness unbiased bias impartiality unvoreingenommenheit equite impartialite imparcialidad imparzialita
        imparcialidade onpartijdigheid bezstronnosc непредвзятость tarafsizlik 公正性 公平性 공정성 الحياد
        निष्पक्षता
    """,
    "accuracy": """
        accuracy correctness factuality genauigkeit exactitude precision precisione exatidao nauwkeurigheid
        dokladnosc точность dogruluk 准确性 正確性 정확성 الدقة सटीकता
    """,
    "clarity": """
        clarity readability klarheit clarte claridad chiarezza clareza helderheid jasnosc ясность aciklik netlik
        清晰度 明確さ 명확성 الوضوح स्पष्टता
    """,
    "style": """
        tone style grammar fluency creativity wit humor humour length brevity ton stil tono stile stilo tom
        estilo toon stijl styl тон стиль uslup 语气 口調 어조
    """,
    "confidence": """
        confidence certainty confidenz zuversicht confiance confianza fiducia confianca zekerheid pewnosc
        уверенность guven 信心 置信度 確信度 확신도 الثقة आत्मविश्वास
    """,
    "quality": """
        politeness kindness empathy relevance completeness coherence depth originality usefulness novelty
        respect hoflichkeit relevanz politesse pertinence relevancia cortesia rilevanza beleefdheid relevantie
        trafnosc вежливость релевантность nezaket 相关性 関連性 관련성 الصلة प्रासंगिकता toxicity difficulty
    """,
}  # fmt: skip

_NUMBERS = (
    "zero null nul zéro cero nol ноль sıfır 零 〇 ゼロ 영 صفر शून्य",
    "one eins ein eine uno una un une um uma een één jeden один bir 一 壹 하나 واحد واحدة एक",
    "two zwei deux dos due dois twee dwa два iki 二 两 둘 اثنان اثنين दो",
    "three drei trois tres tre três drie trzy три üç 三 셋 삼 ثلاثة ثلاث तीन",
    "four vier quatre cuatro quattro quatro cztery четыре dört 四 넷 사 أربعة أربع चार",
    "five fünf cinq cinco cinque vijf pięć пять beş 五 다섯 오 خمسة خمس पाँच पांच",
    "six sechs seis sei zes sześć шесть altı 六 여섯 육 ستة ست छह छः छे",
    "seven sieben sept siete sette sete zeven siedem семь yedi 七 일곱 칠 سبعة سبع सात",
    "eight acht huit ocho otto oito osiem восемь sekiz 八 여덟 팔 ثمانية ثماني आठ",
    "nine neun neuf nueve nove negen dziewięć девять dokuz 九 아홉 구 تسعة تسع नौ",
    "ten zehn dix diez dieci dez tien dziesięć десять 十 열 십 عشرة عشر दस",
)  # fmt: skip

# These make what follows an example.
EXAMPLES = (
    "for example", "e.g", "for instance", "such as", "in the form", "format", "z.b", "zum beispiel", "par exemple",
    "por ejemplo", "per esempio", "por exemplo", "bijvoorbeeld", "na przykład", "например", "örneğin", "mesela", "例如",
    "比如", "例えば", "たとえば", "예를 들어", "مثلا", "مثال", "उदाहरण",
)  # fmt: skip

# These take back a rating that precedes them.
CORRECTIONS = (
    "on reflection", "upon reflection", "after reflection", "on second thought", "second thoughts",
    "on reconsideration", "reconsider", "re-consider", "actually", "correction", "corrected", "wait",
    "scratch that", "strike that", "re-reading", "rereading", "changed my mind", "change my mind", "change it to",
    "changing it to", "let me revise", "i revise", "i'd revise", "revised rating", "revised score", "revise my",
    "revising my", "make that", "thinking it over", "on closer", "looking again", "upon closer", "having thought",
    "bei näherer", "nach reiflicher", "nach überlegung", "bei genauerer", "korrektur", "eigentlich", "moment",
    "doch eher", "en fait", "réflexion faite", "après réflexion", "à la réflexion", "pensándolo", "corrección",
    "en realidad", "mejor dicho", "ripensandoci", "correzione", "anzi", "pensandoci", "pensando bem",
    "pensando melhor", "correção", "na verdade", "bij nader", "correctie", "po namyśle", "po zastanowieniu",
    "właściwie", "korekta", "поразмыслив", "подумав", "по размышлении", "на самом деле", "исправл", "поправк",
    "aslında", "düzeltme", "düşününce", "仔细想", "再想", "更正", "其实", "重新考虑", "修正", "やはり", "訂正",
    "考え直", "다시 생각", "정정", "في الواقع", "تصحيح", "بعد التفكير", "वास्तव में", "सुधार", "सोचने पर",
)  # fmt: skip


def folded(word: str) -> str:
    """A word without case and accents, so that one spelling stands for all variants."""
    if not word.isascii():
        if "\u0e00" <= word[0] <= "\u0e7f" or "\u2e80" <= word[0] <= "\ud7ff" or "\uf900" <= word[0] <= "\ufaff":
            return word
        word = "".join(each for each in unicodedata.normalize("NFKD", word) if not unicodedata.combining(each))
    return word.casefold().replace("ı", "i").replace("ł", "l").replace("’", "'")


def _folded_words(words: str) -> list[str]:
    return [folded(word) for word in words.split()]


@lru_cache(maxsize=1)
def _lexicon() -> tuple[Mapping[str, frozenset[str]], Mapping[str, frozenset[str]]]:
    """The roles of words, and of word beginnings."""
    whole: dict[str, set[str]] = {}
    begun: dict[str, set[str]] = {}
    for role, words in (*_ROLES.items(), *((f"{ASPECT} {name}", words) for name, words in ASPECTS.items())):
        for word in _folded_words(words):
            known = begun if word.endswith("*") else whole
            known.setdefault(word.removesuffix("*"), set()).add(role)
    return tuple({word: frozenset(roles) for word, roles in known.items()} for known in (whole, begun))  # type: ignore[return-value]


@lru_cache(maxsize=4096)
def roles_of(word: str) -> frozenset[str]:
    """The roles of a folded word; none for a word with content of its own."""
    whole, begun = _lexicon()
    found = whole.get(word, frozenset())
    for length in range(3, min(len(word), 14) + 1):
        found |= begun.get(word[:length], frozenset())
    return found


def aspect_of(word: str) -> str | None:
    """The aspect that a folded word names, if any."""
    return next((role.removeprefix(f"{ASPECT} ") for role in roles_of(word) if role.startswith(f"{ASPECT} ")), None)


@lru_cache(maxsize=1)
def number_words() -> Mapping[str, int]:
    """The numbers from 0 to 10 by folded word."""
    return {word: number for number, words in enumerate(_NUMBERS) for word in _folded_words(words)}


@lru_cache(maxsize=1)
def known_words() -> tuple[str, ...]:
    """All words that are known as a whole, folded."""
    return tuple(_lexicon()[0].keys() | number_words().keys())
