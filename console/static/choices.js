// What was chosen is remembered by the browser, if it may.
export function recall(name) {
    try {
        return localStorage.getItem(name) ?? '';
    } catch {
        return '';
    }
}

export function remember(name, value) {
    try {
        localStorage.setItem(name, value);
    } catch {
        // The choice holds for this page.
    }
}
