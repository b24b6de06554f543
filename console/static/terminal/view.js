// Draws a screen as text: rows that are read, selected and copied as any other.
const MOST_LINES = 5000;
const FLAGS = ['bold', 'dim', 'italic', 'underline', 'inverse', 'hidden', 'strike'];

export class View {
    constructor(output) {
        this._output = output;
        this._history = output.querySelector('#history');
        this._rows = output.querySelector('#rows');
        this._drawn = [];
        this._away = [];
        this._isDue = false;
    }

    // A row that left the screen is text above it.
    scrolledAway(line) {
        this._away.push(line);
        if (this._away.length > MOST_LINES) this._away.shift();
    }

    due(screen) {
        if (this._isDue) return;
        this._isDue = true;
        // Pages that nobody sees get no frames, but go on.
        setTimeout(() => {
            this._isDue = false;
            if (screen.changed || this._away.length) this._draw(screen);
        }, 15);
    }

    _draw(screen) {
        const { _output: output } = this;
        const isAtEnd = output.scrollHeight - output.scrollTop - output.clientHeight < 24;
        screen.changed = false;
        this._history.append(...this._away.splice(0).map((line) => row(runs(line, -1))));
        while (this._history.childElementCount > MOST_LINES) this._history.firstElementChild.remove();
        screen.lines.forEach((line, number) => this._drawRow(screen, line, number));
        while (this._rows.childElementCount > screen.rows) this._rows.lastElementChild.remove();
        this._drawn.length = screen.rows;
        if (isAtEnd) output.scrollTop = output.scrollHeight;
    }

    _drawRow(screen, line, number) {
        const found = runs(line, screen.modes.cursor && screen.row === number ? screen.column : -1);
        const key = JSON.stringify(found);
        if (this._drawn[number] === key && this._rows.children[number]) return;
        this._drawn[number] = key;
        const old = this._rows.children[number];
        if (old) old.replaceWith(row(found));
        else this._rows.append(row(found));
    }

    // Where the cursor is, for what has to be beside it.
    get cursor() { return this._rows.querySelector('.cursor'); }
}

// Returns the parts of a row that look the same.
function runs(line, cursor) {
    const found = [];
    line.forEach((cell, column) => {
        const isCursor = column === cursor;
        const last = found.at(-1);
        const isSame = last && !last.isCursor && !isCursor && JSON.stringify(last.style) === JSON.stringify(cell.style);
        if (isSame) last.text += cell.text;
        else found.push({ text: cell.text, style: cell.style, isCursor });
    });
    const last = found.at(-1);
    if (last && !last.isCursor && !last.style.bg && !last.style.inverse) last.text = last.text.trimEnd();
    return found;
}

function row(found) {
    const made = document.createElement('div');
    made.append(...found.filter((one) => one.text).map(part));
    // An empty line is copied, and is as high as another.
    if (!made.textContent) made.append('\u200b');
    return made;
}

function part({ text, style, isCursor }) {
    const classes = FLAGS.filter((one) => style[one]);
    if (!classes.length && !style.fg && !style.bg && !isCursor) return text;
    const made = document.createElement('span');
    made.append(text);
    made.classList.add(...classes, ...(isCursor ? ['cursor'] : []));
    made.style.setProperty('--fg', style.fg || 'var(--text)');
    made.style.setProperty('--bg', style.bg || 'var(--ground)');
    return made;
}
