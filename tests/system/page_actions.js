/* Acts on a report's page as a reader would, in a browser, and complains on its console: test_report_html.sh appends this script to a
 * page. Sets the title to "acted" at the end. */
"use strict";

function expect(is_so, what) {
    if (!is_so)
        console.error(`page: ${what}`);
}

const pointer = (element, kind, x, y) => element.dispatchEvent(
    new PointerEvent(kind, { clientX: x, clientY: y, pointerId: 1, bubbles: true }));

function act_on_table(table) {
    const head = table.querySelector("th"), first = () => [...table.querySelectorAll("td:first-child")].map((cell) => cell.textContent);
    const compare = (a, b) => a.localeCompare(b, undefined, { numeric: true });
    head.click();
    expect(first().every((name, i, all) => i === 0 || compare(all[i - 1], name) <= 0), `${table.id} is not sorted upwards`);
    head.click();
    expect(first().every((name, i, all) => i === 0 || compare(all[i - 1], name) >= 0), `${table.id} is not sorted downwards`);
    for (const cell of table.querySelectorAll("td, th"))
        expect(cell.scrollWidth <= cell.clientWidth + 1, `${table.id}: '${cell.textContent}' is clipped`);
}

/* Shows the middle third of the plot, then all of it again. */
function act_on_plot(id) {
    const plot = () => document.getElementById(id), labels = () => plot().textContent;
    const box = plot().getBoundingClientRect(), whole = labels(), y = box.top + box.height / 2;
    pointer(plot(), "pointermove", box.left + box.width / 2, y);
    const tip = document.getElementById("tip");
    expect(!tip.hidden && tip.textContent.includes(" at "), `${id}: the tip says '${tip.textContent}'`);
    for (const [kind, at] of [["pointerdown", 1 / 3], ["pointermove", 1 / 2], ["pointerup", 2 / 3]])
        pointer(plot(), kind, box.left + box.width * at, y);
    expect(labels() !== whole, `${id}: dragging shows no other range`);
    plot().dispatchEvent(new MouseEvent("dblclick", { bubbles: true }));
    expect(labels() === whole, `${id}: a double click does not show all again`);
}

/* No label of a plot reaches out of it, nor over the title of the y axis, which stands upright at its left edge. */
function look_at_labels(plot) {
    const box = plot.getBoundingClientRect(), labels = [...plot.querySelectorAll("text")].filter((label) => label.textContent);
    const upright = labels.filter((label) => (label.getAttribute("transform") || "").startsWith("translate(13 "));
    const title = upright.length > 0 ? upright[0].getBoundingClientRect() : null;
    for (const label of labels) {
        const { left, right, top, bottom } = label.getBoundingClientRect();
        expect(left >= box.left - 1 && right <= box.right + 1, `${plot.id}: '${label.textContent}' reaches out of the plot`);
        const covers = title && label !== upright[0] && left < title.right && top < title.bottom && bottom > title.top;
        expect(!covers, `${plot.id}: '${label.textContent}' lies on the title of the axis`);
    }
}

function act() {
    for (const plot of document.querySelectorAll("figure svg"))
        look_at_labels(plot);
    for (const text of document.querySelectorAll("pre"))
        expect(text.scrollWidth <= text.clientWidth + 1, "a text is clipped");
    for (const table of document.querySelectorAll("table"))
        if (table.offsetParent !== null) /* not within what is closed */
            act_on_table(table);
    for (const plot of document.querySelectorAll("#loss, #auc"))
        if (plot.querySelector("[data-points]:not([data-points='0'])"))
            act_on_plot(plot.id);
    for (const mark of document.querySelectorAll(".of-mark"))
        expect(mark.textContent.length > 0 || mark.parentNode.querySelectorAll(".of-mark").length > 1, "a dashed line has no label");
    expect(document.documentElement.scrollWidth <= window.innerWidth, "the page is wider than its window");
    document.title = "acted";
}
window.setTimeout(act, 1000);
