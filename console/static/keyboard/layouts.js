// The keys of keyboards in other countries, with the character of each: alone, with Shift, with AltGr,
// and with both. A combining character is a dead key's; a space is none. The data are those of
// xkeyboard-config 2.35 (MIT), without characters that few guests have on these keys.

export const CODES = [
    'Backquote', 'Digit1', 'Digit2', 'Digit3', 'Digit4', 'Digit5', 'Digit6', 'Digit7', 'Digit8',
    'Digit9', 'Digit0', 'Minus', 'Equal', 'IntlYen', 'KeyQ', 'KeyW', 'KeyE', 'KeyR',
    'KeyT', 'KeyY', 'KeyU', 'KeyI', 'KeyO', 'KeyP', 'BracketLeft', 'BracketRight', 'Backslash',
    'KeyA', 'KeyS', 'KeyD', 'KeyF', 'KeyG', 'KeyH', 'KeyJ', 'KeyK', 'KeyL',
    'Semicolon', 'Quote', 'IntlBackslash', 'KeyZ', 'KeyX', 'KeyC', 'KeyV', 'KeyB', 'KeyN',
    'KeyM', 'Comma', 'Period', 'Slash', 'IntlRo',
];

export const LAYOUTS = {
    us: {
        name: 'US',
        levels: [
            '`1234567890-= qwertyuiop[]\\asdfghjkl;\'<zxcvbnm,./',
            '~!@#$%^&*()_+ QWERTYUIOP{}|ASDFGHJKL:">ZXCVBNM >?',
            '',
            '                                      ¦',
        ],
    },
    gb: {
        name: 'British',
        levels: [
            '`1234567890-= qwertyuiop[]#asdfghjkl;\'\\zxcvbnm,./',
            '¬!"£$%^&*()_+ QWERTYUIOP{}~ASDFGHJKL:@|ZXCVBNM<>?',
            '  ²³€       \u0327  ſ  ŧ   øþ\u0308\u0303\u0300æßðđŋħ ĸł\u0301\u0302       µ',
            '          ° \u0328  §  Ŧ  ıØÞ\u030a\u0304\u0306Æ Ð ŊĦ  Ł\u030b\u030c¦         \u0307',
        ],
    },
    de: {
        name: 'German',
        levels: [
            '\u03021234567890ß\u0301 qwertzuiopü+#asdfghjklöä<yxcvbnm,.-',
            '°!"§$%&/()=?\u0300 QWERTZUIOPÜ*\'ASDFGHJKLÖÄ>YXCVBNM;:_',
            '  ²³  ¬{[]}\\\u0327 @ſ€ ŧ   øþ\u0308~ æſðđŋħ ĸł\u030b |      µ',
            '   £¤       \u0328     Ŧ  ıØÞ\u030a \u0306Æ Ð ŊĦ\u0307 Ł \u030c',
        ],
    },
    ch: {
        name: 'Swiss German',
        levels: [
            '§1234567890\'\u0302 qwertzuiopü\u0308$asdfghjklöä<yxcvbnm,.-',
            '°+"*ç%&/()=?\u0300 QWERTZUIOPè!£ASDFGHJKLéà>YXCVBNM;:_',
            '¬|@#  ¬| ]}\u0301\u0303 @ſ€ ŧ   œþ[]}æßðđŋħ ĸł\u0301{\\      µ',
            '            \u0328     Ŧ  ıŒÞ\u030a\u0304\u0306Æ Ð ŊĦ  Ł\u030b\u030c¦         \u0307',
        ],
    },
    'ch-fr': {
        name: 'Swiss French',
        levels: [
            '§1234567890\'\u0302 qwertzuiopè\u0308$asdfghjkléà<yxcvbnm,.-',
            '°+"*ç%&/()=?\u0300 QWERTZUIOPü!£ASDFGHJKLöä>YXCVBNM;:_',
            '¬|@#  ¬| ]}\u0301\u0303 @ſ€ ŧ   œþ[]}æßðđŋħ ĸł\u0301{\\      µ',
            '            \u0328     Ŧ  ıŒÞ\u030a\u0304\u0306Æ Ð ŊĦ  Ł\u030b\u030c¦         \u0307',
        ],
    },
    fr: {
        name: 'French',
        levels: [
            '²&é"\'(-è_çà)= azertyuiop\u0302$*qsdfghjklmù<wxcvbn,;:!',
            '~1234567890°+ AZERTYUIOP\u0308£µQSDFGHJKLM%>WXCVBN?./§',
            '¬  #{[|`\\^@]} æ € ŧ   øþ ¤\u0300@ßðđŋħ ĸł  |ł     \u0301',
            '            \u0328 Æ   Ŧ  ıØÞ\u030a\u0304\u0306  Ð ŊĦ  Ł \u030c¦Ł     \u030b  \u0307',
        ],
    },
    be: {
        name: 'Belgian',
        levels: [
            '²&é"\'(§è!çà)- azertyuiop\u0302$µqsdfghjklmù<wxcvbn,;:=',
            '³1234567890°_ AZERTYUIOP\u0308*£QSDFGHJKLM%>WXCVBN?./+',
            '¬|@#  ^{[{}\\\u0327 @ſ€ ŧ   œþ[]\u0300æßðđŋħ ĸł\u0301\u0301\\      \u0327  \u0303',
            '            \u0328     Ŧ  ıŒÞ\u030a\u0304\u0306Æ Ð ŊĦ  Ł\u030b\u030c          \u0307',
        ],
    },
    ca: {
        name: 'Canadian French',
        levels: [
            '#1234567890-= qwertyuiop\u0302\u0327<asdfghjkl;\u0300«zxcvbnm,.é',
            '|!"/$%?&*()_+ QWERTYUIOP \u0308>ASDFGHJKL: »ZXCVBNM\' É',
            '\\ @£ ¤¬¦²³            § []}         ~{°      µ  \u0301',
            '',
        ],
    },
    es: {
        name: 'Spanish',
        levels: [
            'º1234567890\'¡ qwertyuiop\u0300+çasdfghjklñ\u0301<zxcvbnm,.-',
            'ª!"·$%&/()=?¿ QWERTYUIOP\u0302*ÇASDFGHJKLÑ\u0308>ZXCVBNM;:_',
            '\\|@#~ ¬{[]}\\\u0327 @ſ€ ŧ   øþ[]}æßðđŋħ ĸł\u0303{|      µ',
            '   £      ° \u0328  §  Ŧ  ıØÞ\u030a\u0304\u0306Æ Ð ŊĦ  Ł\u030b\u030c¦         \u0307',
        ],
    },
    latam: {
        name: 'Latin American',
        levels: [
            '|1234567890\'¿ qwertyuiop\u0301+}asdfghjklñ{<zxcvbnm,.-',
            '°!"#$%&/()=?¡ QWERTYUIOP\u0308*]ASDFGHJKLÑ[>ZXCVBNM;:_',
            '¬ @ ~ ¬    \\\u0327 @ſ€ ŧ   øþ ~\u0300æßðđŋħ ĸł~\u0302\\      µ',
            '   £        \u0328  §  Ŧ  ıØÞ\u030a\u0304 Æ Ð ŊĦ  Ł\u030b           \u0307',
        ],
    },
    pt: {
        name: 'Portuguese',
        levels: [
            '\\1234567890\'« qwertyuiop+\u0301\u0303asdfghjklçº<zxcvbnm,.-',
            '|!"#$%&/()=?» QWERTYUIOP*\u0300\u0302ASDFGHJKLÇª>ZXCVBNM;:_',
            '¬ @£§ ¬{[]} \u0327 @ſ€ ŧ   øþ\u0308  æßðđŋħ ĸł         µ',
            '          ° \u0328     Ŧ  ıØÞ\u030a\u0304\u0306Æ Ð ŊĦ  Ł\u030b\u030c          \u0307',
        ],
    },
    br: {
        name: 'Brazilian',
        levels: [
            '\'1234567890-= qwertyuiop\u0301[]asdfghjklç\u0303\\zxcvbnm,.;/',
            '"!@#$%\u0308&*()_+ QWERTYUIOP\u0300{}ASDFGHJKLÇ\u0302|ZXCVBNM<>:?',
            '¬ ²³£ ¬     §   ° ŧ   øþ   æßðđŋħ ĸł ~\u030c      µ   °',
            '            \u0328     Ŧ  ıØÞ`\u0304 Æ Ð ŊĦ  Ł\u030b^\u0306         \u0307',
        ],
    },
    it: {
        name: 'Italian',
        levels: [
            '\\1234567890\'ì qwertyuiopè+ùasdfghjklòà<zxcvbnm,.-',
            '|!"£$%&/()=?^ QWERTYUIOPé*§ASDFGHJKLç°>ZXCVBNM;:_',
            '¬ ²³  ¬{[]}`~ @ſ€ ŧ   øþ[]\u0300æßðđŋħ ĸł@#      ñµ\u0301 \u0304',
            '¦ \u030b\u0303      \u0328 \u0302     Ŧ  ıØÞ  \u0306Æ Ð ŊĦ  Ł\u0327\u030a      Ñ  \u0308',
        ],
    },
    dk: {
        name: 'Danish',
        levels: [
            '½1234567890+\u0301 qwertyuiopå\u0308\'asdfghjklæø<zxcvbnm,.-',
            '§!"#¤%&/()=?\u0300 QWERTYUIOPÅ\u0302*ASDFGHJKLÆØ>ZXCVBNM;:_',
            '  @£$  {[]} | @ſ€ þ   œþ \u0303\u030b ßðđŋħ ĸł  \\      µ\u0327',
            '  ²³      ° ¦     Þ  ıŒÞ\u030a\u030c   Ð ŊĦ  Ł \u030c¬       \u0328\u0307\u0307',
        ],
    },
    no: {
        name: 'Norwegian',
        levels: [
            '|1234567890+\\ qwertyuiopå\u0308\'asdfghjkløæ<zxcvbnm,.-',
            '§!"#¤%&/()=?\u0300 QWERTYUIOPÅ\u0302*ASDFGHJKLØÆ>ZXCVBNM;:_',
            '¦ @£$  {[]} \u0301 @ſ€ þ   œ  \u0303\u030b ßðđŋħ ĸł\u0301        µ\u0327',
            '  ²³      ° ¬     Þ  ıŒ \u030a\u030c   Ð ŊĦ  Ł \u030c        \u0328',
        ],
    },
    se: {
        name: 'Swedish, Finnish',
        levels: [
            '§1234567890+\u0301 qwertyuiopå\u0308\'asdfghjklöä<zxcvbnm,.-',
            '½!"#¤%&/()=?\u0300 QWERTYUIOPÅ\u0302*ASDFGHJKLÖÄ>ZXCVBNM;:_',
            '  @£$€ {[]}\\  @ſ€ þ   œþ \u0303  ßðđŋħ ĸłøæ|      µ\u0327',
            '  ²³      ° ¬     Þ  ıŒÞ\u030a\u030c   Ð ŊĦ  ŁØÆ¦       \u0328\u0307\u0307',
        ],
    },
    is: {
        name: 'Icelandic',
        levels: [
            '\u030a1234567890ö- qwertyuiopð\'+asdfghjklæ\u0301<zxcvbnm,.þ',
            '\u0308!"#$%&/()=Ö_ QWERTYUIOPÐ?*ASDFGHJKLÆ >ZXCVBNM;:Þ',
            '¬ ²³  ¬{[]}\\\u0327 @ſ€ ŧ   ø| ~` ß đŋħ ĸł^\u0302|      µ',
            '   £¤     ° \u0328  §  Ŧ  ıØ  \u0304\u0306    ŊĦ  Ł\u030b\u030c¦         \u0307',
        ],
    },
    pl: {
        name: 'Polish',
        levels: [
            '`1234567890-= qwertyuiop[]\\asdfghjkl;\'<zxcvbnm,./',
            '~!@#$%^&*()_+ QWERTYUIOP{}|ASDFGHJKL:">ZXCVBNM >?',
            '¬ ²³ € §    \u0327  œę ß   óþ\u0308\u0303\u0300ąśðæŋ   ł\u0301\u0302 żźć  ńµ',
            '   £      ° \u0328  ŒĘ     ÓÞ\u030a\u0304\u0306ĄŚÐÆŊ Ə Ł\u030b\u030c¦ŻŹĆ  Ń   \u0307',
        ],
    },
    cz: {
        name: 'Czech',
        levels: [
            ';+ěščřžýáíé=\u0301 qwertzuiopú)\u0308asdfghjklů§\\yxcvbnm,.-',
            '\u030a1234567890%\u030c QWERTZUIOP/(\'ASDFGHJKL"!|YXCVBNM?:_',
            '` @#$ ^&*{} \u0304   € ŧ   øþ[] ~đĐ[]` łŁ$  °#&@{}^<>*',
            ' \u0303 \u0302\u0306 \u0328\u0300\u0307 \u030b \u0327     Ŧ  ıØÞ   Æ Ð ŊĦ   \u030bß¦         \u0307',
        ],
    },
    sk: {
        name: 'Slovak',
        levels: [
            ';+ľščťžýáíé=\u0301 qwertzuiopúäňasdfghjklô§\\yxcvbnm,.-',
            '\u030a1234567890%\u030c QWERTZUIOP/()ASDFGHJKL"!|YXCVBNM?:_',
            '` @#$ ^&*{} \u0304   € ŧ   øþ[] ~đĐ[]`\'łŁ$\' °#&@{}^<>*',
            ' \u0303 \u0302\u0306 \u0328\u0300\u0307 \u030b\u0308\u0327     Ŧ  ıØÞ   Æ Ð ŊĦ   \u030bß¦         \u0307',
        ],
    },
    hu: {
        name: 'Hungarian',
        levels: [
            '0123456789öüó qwertzuiopőúűasdfghjkléáíyxcvbnm,.-',
            '§\'"+!%/=()ÖÜÓ QWERTZUIOPŐÚŰASDFGHJKLÉÁÍYXCVBNM?:_',
            '¬~\u030c^\u0306\u030a\u0328`\u0307\u0301\u030b\u0308\u0327 \\|Ä ŧ €     ¤äđĐ[]ħ łŁ$ß<>#&@{}<;>*',
            ' \u0303 \u0302 ° \u0300          Ŧ   ØÞ \u0304   Ð ŊĦ',
        ],
    },
    si: {
        name: 'Slovenian, Croatian',
        levels: [
            '¸1234567890\'+ qwertzuiopšđžasdfghjklčć<yxcvbnm,.-',
            '¨!"#$%&/()=?* QWERTZUIOPŠĐŽASDFGHJKLČĆ>YXCVBNM;:_',
            ' \u0303\u030c\u0302\u0306\u030a\u0328\u0300\u0307\u0301\u030b\u0308\u0327 \\|€ ŧ   øþ  ¤æ  []ħ łł\u0301ß|   @{}§',
            ' ~ ^ ° `       Ł  Ŧ  ıØÞ \u0304 Æ   ŊĦ  Ł  ¦   `',
        ],
    },
    ro: {
        name: 'Romanian',
        levels: [
            '`1234567890-= qwertyuiop[]\\asdfghjkl;\'\\zxcvbnm,./',
            '~!@#$%^&*()_+ QWERTYUIOP{}|ASDFGHJKL:"|ZXCVBNM<>?',
            ' \u0303\u030c\u0302\u0306\u030a\u0328\u0300\u0307\u0301\u030b\u0308\u0327 âß€ ț  î §   ășđ     ł',
            '              Â   Ț  Î     ĂȘĐ     Ł  ¦',
        ],
    },
    lt: {
        name: 'Lithuanian',
        levels: [
            '`ąčęėįšųū„“-ž qwertyuiop[]\\asdfghjkl;\'–zxcvbnm,./',
            '~ĄČĘĖĮŠŲŪ()_Ž QWERTYUIOP{}|ASDFGHJKL:"€ZXCVBNM<>?',
            ' 1234567890 = @ſ  ŧ   øþ\u0308\u0303\u0300æßðđŋħ ĸł\u0301\u0302       µ',
            '¬! #$%^&*   +  §£ Ŧ  ıØÞ\u030a\u0304\u0306Æ Ð ŊĦ &Ł\u030b\u030c¦         \u0307',
        ],
    },
    lv: {
        name: 'Latvian',
        levels: [
            '`1234567890-= qwertyuiop[]\\asdfghjkl;\'<zxcvbnm,./',
            '~!@#$%^&*()_+ QWERTYUIOP{}|ASDFGHJKL:">ZXCVBNM >?',
            '  ²³€           ēŗ  ūīō    āš  ģ  ķļ   ž č  ņ',
            '   £      °     ĒŖ  ŪĪŌ    ĀŠ  Ģ  ĶĻ  ¦Ž Č  Ņ',
        ],
    },
    ee: {
        name: 'Estonian',
        levels: [
            '\u030c1234567890+\u0301 qwertyuiopüõ\'asdfghjklöä<zxcvbnm,.-',
            '\u0303!"#¤%&/()=?\u0300 QWERTYUIOPÜÕ*ASDFGHJKLÖÄ>ZXCVBNM;:_',
            '¬ @£$ ¬{[]}\\` @ſ€ ŧ   øþ\u0308§ æšðđŋħ ĸł ^|ž     µ  |',
            '          °       Ŧ  ıØÞ\u030a\u0304\u0306ÆŠÐ ŊĦ  Ł\u030b ¦Ž',
        ],
    },
    tr: {
        name: 'Turkish',
        levels: [
            '"1234567890*- qwertyuıopğü,asdfghjklşi<zxcvbnmöç.',
            'é!\'^+%&/()=?_ QWERTYUIOPĞÜ;ASDFGHJKLŞİ>ZXCVBNMÖÇ:',
            '  £#$  {[]}\\| @ €   ûîô \u0308~`âß         |      µ  \u0307',
            '° ²³      °         ÛÎÔ \u030a\u0304\u0300Â        \u0301\u030c¦',
        ],
    },
    jp: {
        name: 'Japanese',
        levels: [
            ' 1234567890-^\\qwertyuiop@[]asdfghjkl;:<zxcvbnm,./\\',
            ' !"#$%&\'()~=~|QWERTYUIOP`{}ASDFGHJKL+*>ZXCVBNM >?_',
            '',
            '                                      ¦',
        ],
    },
};
