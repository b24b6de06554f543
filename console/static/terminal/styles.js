// How characters look: what SGR sequences say.
export const PLAIN = Object.freeze({
    fg: '', bg: '', bold: false, dim: false, italic: false, underline: false, inverse: false, hidden: false, strike: false,
});

const SET = {
    1: { bold: true }, 2: { dim: true }, 3: { italic: true }, 4: { underline: true }, 5: {}, 7: { inverse: true },
    8: { hidden: true }, 9: { strike: true }, 21: { underline: true }, 22: { bold: false, dim: false },
    23: { italic: false }, 24: { underline: false }, 27: { inverse: false }, 28: { hidden: false },
    29: { strike: false }, 39: { fg: '' }, 49: { bg: '' },
};
const BASE = [
    ...['#12161d', '#f06a6a', '#6fd693', '#e5c07b', '#7fb2ff', '#d68fe0', '#62cfd8', '#cfd3da'],
    ...['#8a919c', '#ff9a9a', '#9ff0bb', '#ffdf9e', '#a9ccff', '#edb3f5', '#97ecf3', '#ffffff'],
];
const STEPS = [0, 95, 135, 175, 215, 255];

const rgb = (red, green, blue) => `rgb(${red}, ${green}, ${blue})`;

// Returns one of the 256 colours: 16 named ones, a cube, and greys.
export function colour(number) {
    if (number < 16) return BASE[number];
    if (number > 231) return rgb(...Array(3).fill(8 + 10 * (number - 232)));
    const cube = number - 16;
    return rgb(STEPS[Math.floor(cube / 36)], STEPS[Math.floor(cube / 6) % 6], STEPS[cube % 6]);
}

// Returns the style after an SGR sequence.
export function styled(style, numbers) {
    let now = { ...style };
    const rest = numbers.length ? [...numbers] : [0];
    while (rest.length) {
        const one = rest.shift();
        if (one === 0) now = { ...PLAIN };
        else if (one === 38 || one === 48) now[one === 38 ? 'fg' : 'bg'] = extended(rest);
        else if (one >= 30 && one <= 37) now.fg = colour(one - 30);
        else if (one >= 40 && one <= 47) now.bg = colour(one - 40);
        else if (one >= 90 && one <= 97) now.fg = colour(one - 82);
        else if (one >= 100 && one <= 107) now.bg = colour(one - 92);
        else Object.assign(now, SET[one]);
    }
    return Object.freeze(now);
}

function extended(rest) {
    const kind = rest.shift();
    if (kind === 5) return colour(Math.min(rest.shift() ?? 0, 255));
    if (kind !== 2) return '';
    const [red, green, blue] = rest.splice(0, 3).map((one) => Math.min(one, 255));
    return rgb(red ?? 0, green ?? 0, blue ?? 0);
}
