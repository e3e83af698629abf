"""The words the demo's values are made of."""


def _words(text: str) -> tuple[str, ...]:
    """Split a text at commas and line ends."""
    parts = (part.strip() for part in text.replace("\n", ",").split(","))
    return tuple(part for part in parts if part)


def _records(text: str) -> tuple[tuple[str, ...], ...]:
    """Split a text into lines, and each line at its bars."""
    lines = (line.strip() for line in text.splitlines())
    return tuple(tuple(part.strip() for part in line.split("|")) for line in lines if line)


# People and places, used by every domain.
FIRST_NAMES = _words("""
    Anna, Ben, Carla, David, Elena, Felix, Greta, Hugo, Ines, Jonas, Katrin, Lukas, Maria, Noah
    Olivia, Paul, Renate, Samuel, Tessa, Uwe, Vera, Walter, Yasmin, Zoë, Aisha, Bruno, Chloe
    Dmitri, Emma, Farid, Gina, Henrik, Ivana, Jürgen, Kofi, Lena, Mateo, Nadia, Oskar, Priya
    Rafael, Sofia, Tomasz, Ursula, Viktor, Wei, Ximena, Søren, Amélie, Björn
""")
LAST_NAMES = _words("""
    Adler, Bauer, Castillo, Dubois, Eriksson, Fischer, Garcia, Hansen, Ivanov, Jansen, Keller
    Lindqvist, Moreau, Novak, Okafor, Peters, Quinn, Rossi, Schneider, Tanaka, Ulrich, Vargas
    Weber, Yilmaz, Zimmermann, Andersson, Becker, Chen, Diaz, Evans, Fontana, Gruber, Hoffmann
    Kowalski, Larsen, Müller, Nowak, Olsen, Petrov, Ricci, Sato, Schröder, Taylor, Vogel, Wagner
    Baker, Khan, Mbeki, Singh, Murphy
""")
CITIES = _words("""
    Hamburg, Leipzig, Köln, Graz, Zürich, Lyon, Nantes, Milano, Torino, Porto, Sevilla, Gent
    Utrecht, Aarhus, Malmö, Göteborg, Bergen, Tampere, Kraków, Brno, Leeds, Bristol, Cork, Toronto
""")
STREETS = _words("""
    Station Road, Mill Lane, Harbour Street, Church Walk, Garden Row, Market Square, Lindenallee
    Bahnhofstraße, Rue des Lilas, Via Garibaldi, Calle Mayor, Kungsgatan, Bridge Street
    Orchard Way, Hillside, Schulweg
""")
# The first fourteen are the ones we sell to; the others are only in the reference table.
COUNTRIES = _records("""
    DE | Germany | Europe | EUR
    FR | France | Europe | EUR
    SE | Sweden | Europe | SEK
    IT | Italy | Europe | EUR
    ES | Spain | Europe | EUR
    NL | Netherlands | Europe | EUR
    CH | Switzerland | Europe | CHF
    PL | Poland | Europe | PLN
    DK | Denmark | Europe | DKK
    GB | United Kingdom | Europe | GBP
    AT | Austria | Europe | EUR
    CA | Canada | North America | CAD
    US | United States | North America | USD
    NO | Norway | Europe | NOK
    PT | Portugal | Europe | EUR
    BE | Belgium | Europe | EUR
    FI | Finland | Europe | EUR
    CZ | Czechia | Europe | CZK
    IE | Ireland | Europe | EUR
    JP | Japan | Asia | JPY
    BR | Brazil | South America | BRL
    ZA | South Africa | Africa | ZAR
    AU | Australia | Oceania | AUD
    MX | Mexico | North America | MXN
""")

# Sales: category | parent category | lowest and highest price | highest weight in kg | products.
CATEGORIES = _records("""
    Kitchen | | 6-45 | 2 | Bread knife, Salad bowl, Chopping board, Pepper mill, Whisk
    Coffee and tea | Kitchen | 25-480 | 9 | Espresso machine, French press, Teapot, Milk frother
    Cookware | Kitchen | 20-140 | 6 | Frying pan, Stock pot, Wok, Casserole, Griddle, Saucepan
    Furniture | | 35-160 | 14 | Coat rack, Side table, Folding chair, Step stool, Room divider
    Office furniture | Furniture | 90-620 | 38 | Standing desk, Office chair, Filing cabinet
    Bedroom | Furniture | 70-700 | 60 | Bed frame, Wardrobe, Nightstand, Mattress
    Lighting | | 15-130 | 5 | Desk lamp, Floor lamp, Pendant light, Wall light, Lantern
    Garden | | 12-180 | 20 | Watering can, Parasol, Garden bench, Rake, Planter, Wheelbarrow
    Outdoor cooking | Garden | 60-540 | 45 | Charcoal grill, Gas grill, Pizza oven, Fire bowl
    Electronics | | 15-190 | 4 | Power bank, Headphones, Alarm clock, Weather station, Desk fan
    Audio | Electronics | 30-320 | 8 | Bluetooth speaker, Turntable, Soundbar, Radio, Microphone
    Textiles | | 8-110 | 3 | Bath towel, Cushion cover, Bed linen, Curtain, Wool blanket, Doormat
    Toys | | 7-60 | 2 | Building blocks, Jigsaw puzzle, Toy train, Kite, Board game, Plush bear
    Gift cards | | 20-100 | 1 | Gift card
""")
VARIANTS = _words("Classic, Compact, Deluxe")

# Logistics: product code stem | description | unit.
ITEMS = _records("""
    PLT | Pallet, EUR 1 | pc
    PJK | Pallet jack | pc
    STF | Stretch film | roll
    CTN | Carton 600x400 | pc
    CRT | Crate, folding | pc
    TPE | Packing tape | roll
    LBL | Thermal labels | roll
    DRM | Steel drum 200 l | pc
    IBC | Bulk container 1000 l | pc
    LIB | Lithium battery pack | pc
    SLV | Cleaning solvent | l
    PNT | Paint, water-based | l
    ADH | Contact adhesive | kg
    LUB | Gear oil | l
    BRG | Ball bearing | pc
    VBT | V-belt | pc
    HYD | Hydraulic hose | m
    FLT | Air filter | pc
    MTR | Electric motor | pc
    PMP | Centrifugal pump | pc
    VLV | Gate valve | pc
    GSK | Flange gasket | pc
    SCR | Hex screws M8 | box
    CBL | Copper cable | m
""")
WAREHOUSES = _records("""
    WH-HAM | Hamburg Harbour | Hamburg | DE
    WH-LEJ | Leipzig Hub | Leipzig | DE
    WH-RTM | Maasvlakte | Rotterdam | NL
    WH-LYS | Lyon Sud | Lyon | FR
    WH-GOT | Arendal | Göteborg | SE
    WH-KRK | Nowa Huta | Kraków | PL
    WH-MIL | Segrate | Milano | IT
""")
CARRIERS = _words("""
    Nordfracht, Alpina Cargo, Blue Anchor Line, Transmosa, Kestrel Freight, Ostwind Spedition
    Rapide Express, Polar Haulage, Vector Parcel
""")
PORTS = _words("""
    Rotterdam, Antwerp, Gdansk, Genoa, Valencia, Bremerhaven, Oslo, Dublin, Basel, Vienna, Lille
    Porto, Aarhus, Tallinn, Ostrava
""")
SUPPLIER_STEMS = _words("""
    Hartmann, Ostsee, Rheintal, Kröger, Silbermann, Böhm, Allgäu, Elbe, Falke, Grünwald, Lüders
    Steinbach
""")
SUPPLIER_FORMS = _words("Verpackungen GmbH, Technik AG, Industriebedarf KG")

# Staff of a company.
DEPARTMENTS = _words("""
    Finance, Engineering, Marketing, Customer Support, Legal, Purchasing, Facilities, Research
    Data Platform, Works Council
""")
JOB_TITLES = _words("""
    Analyst, Senior Analyst, Engineer, Senior Engineer, Team Lead, Assistant, Coordinator
    Specialist, Consultant, Director
""")
SKILLS = _words("""
    Python, SQL, Negotiation, Bookkeeping, Project management, Public speaking, German, French
    Spanish, Welding, First aid, Contract law, Copywriting, Statistics, Kubernetes, Java
    Graphic design, Coaching, Auditing, Forklift licence
""")
LEAVE_TYPES = _words("annual leave, sick leave, parental leave, unpaid leave, study leave")

# Clinic.
SPECIALTIES = _words("""
    General medicine, Paediatrics, Cardiology, Dermatology, Orthopaedics, Neurology
""")
DIAGNOSES = _records("""
    J45 | Asthma | Respiratory
    J20 | Acute bronchitis | Respiratory
    J06 | Upper respiratory infection | Respiratory
    J18 | Pneumonia | Respiratory
    I10 | Essential hypertension | Circulatory
    I25 | Chronic ischaemic heart disease | Circulatory
    I48 | Atrial fibrillation | Circulatory
    E11 | Type 2 diabetes mellitus | Endocrine
    E03 | Hypothyroidism | Endocrine
    E78 | Hyperlipidaemia | Endocrine
    K21 | Gastro-oesophageal reflux | Digestive
    K29 | Gastritis | Digestive
    K58 | Irritable bowel syndrome | Digestive
    M54 | Back pain | Musculoskeletal
    M17 | Osteoarthritis of the knee | Musculoskeletal
    M81 | Osteoporosis | Musculoskeletal
    G43 | Migraine | Nervous system
    G40 | Epilepsy | Nervous system
    F32 | Depressive episode | Mental health
    F41 | Anxiety disorder | Mental health
    L20 | Atopic dermatitis | Skin
    L40 | Psoriasis | Skin
    H66 | Otitis media | Ear
    N39 | Urinary tract infection | Genitourinary
    S93 | Sprained ankle | Injury
    B02 | Shingles | Infection
""")
# Drug | ATC code | form | usual dose in mg.
MEDICATIONS = _records("""
    Amoxicillin | J01CA04 | capsule | 500
    Ibuprofen | M01AE01 | tablet | 400
    Paracetamol | N02BE01 | tablet | 500
    Salbutamol | R03AC02 | inhaler | 0.1
    Budesonide | R03BA02 | inhaler | 0.2
    Metformin | A10BA02 | tablet | 850
    Ramipril | C09AA05 | tablet | 2.5
    Bisoprolol | C07AB07 | tablet | 2.5
    Atorvastatin | C10AA05 | tablet | 20
    Levothyroxine | H03AA01 | tablet | 0.05
    Omeprazole | A02BC01 | capsule | 20
    Pantoprazole | A02BC02 | tablet | 40
    Sumatriptan | N02CC01 | tablet | 50
    Sertraline | N06AB06 | tablet | 50
    Apixaban | B01AF02 | tablet | 5
    Hydrocortisone | D07AA02 | cream | 10
    Diclofenac | M01AB05 | gel | 10
    Nitrofurantoin | J01XE01 | capsule | 100
    Doxycycline | J01AA02 | tablet | 100
    Aciclovir | J05AB01 | tablet | 200
    Cetirizine | R06AE07 | tablet | 10
    Naproxen | M01AE02 | tablet | 250
    Lamotrigine | N03AX09 | tablet | 25
    Alendronic acid | M05BA04 | tablet | 70
""")

# School.
SUBJECTS = _records("""
    MAT | Mathematics
    PHY | Physics
    CHE | Chemistry
    BIO | Biology
    ENG | English
    GER | German
    FRE | French
    HIS | History
    GEO | Geography
    ART | Art
    MUS | Music
    SPO | Sports
    INF | Computer science
    LAT | Latin
""")
MEALS = _records("""
    Lentil soup | 1
    Vegetable lasagne | 1
    Fish fingers | 0
    Chicken curry | 0
    Pancakes | 1
    Spaghetti bolognese | 0
    Cheese omelette | 1
    Meatballs | 0
    Falafel wrap | 1
    Potato gratin | 1
    Goulash | 0
""")

# Streaming.
PLANS = _records("""
    BAS | Basic with adverts | 5.99 | 1
    STD | Standard | 10.99 | 2
    PRM | Premium | 16.99 | 4
    STU | Student | 4.99 | 1
    FAM | Family | 19.99 | 6
""")
GENRES = _words("drama, comedy, horror, documentary, thriller, romance, science fiction, animation")
TITLE_STARTS = _words("""
    The Silent, A Distant, The Last, Beyond the, Under the, The Paper, Midnight, The Glass
    Return to the, The Hollow, A Borrowed, Northern
""")
TITLE_ENDS = _words("""
    Harbour, Orchard, Lighthouse, Winter, Bridge, Station, Garden, River, Map, Carousel, Island
    Machine, Letters, Mountain
""")
PLAYLIST_NAMES = _words("""
    Weekend, Watch later, With the kids, Rainy days, Favourites, Date night, For the train
    Recommended by friends, Classics, Late at night
""")
