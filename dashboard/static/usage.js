// Draws the charts of usage, whose numbers are in their figures; the table has the same.
"use strict";

const style = getComputedStyle(document.documentElement);
// Asked for each time that it draws: the theme may change.
const colour = (name, opacity = "") => () => style.getPropertyValue(name).trim() + opacity;
const font = "12px system-ui, sans-serif";
const day = "\n{D} {MMM}";
const times = [
  // Seconds between ticks, text of a tick, and what is below it where a year, month or day begins.
  [86400, "{D} {MMM}", null, null, null, null, null, null, 1],
  [3600, "{HH}:{mm}", day, null, day, null, null, null, 1],
  [60, "{HH}:{mm}", day, null, day, null, null, null, 1],
];
const wholes = [1, 2, 5].flatMap((one) => [...Array(9).keys()].map((zeros) => one * 10 ** zeros));
wholes.sort((one, other) => one - other);

const plain = (_, ticks) => ticks.map((one) => String(Number(one.toFixed(3))));

const plots = [...document.querySelectorAll(".chart")].map(draw);
const again = () => plots.forEach((plot) => plot.redraw(false));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
new MutationObserver(again).observe(document.documentElement, { attributeFilter: ["data-theme"] });

function draw(figure) {
  const { begin, end, step, points, unit } = figure.dataset;
  const values = points.split(",").map(Number);
  const at = values.map((_, index) => Number(begin) + index * step);
  // The last step's value holds until the end.
  const data = [[...at, Number(end)], [...values, values.at(-1)]];
  const box = figure.querySelector(".plot");
  box.hidden = false;
  const size = () => ({ width: box.clientWidth, height: box.clientHeight });
  const plot = new uPlot({ ...size(), ...looks(figure.querySelector(".reading"), unit) }, data, box);
  new ResizeObserver(() => plot.setSize(size())).observe(box);
  return plot;
}

function looks(reading, unit) {
  const axis = { stroke: colour("--dim"), font, ticks: { show: false } };
  const grid = { stroke: colour("--line"), width: 1 };
  return {
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
    scales: { y: { range: (_, __, most) => [0, Math.max(1, most * 1.1)] } },
    axes: [
      { ...axis, grid: { show: false }, size: 42, values: times },
      { ...axis, grid, size: 58, space: 34, values: plain, ...(unit ? {} : { incrs: wholes }) },
    ],
    padding: [22, 8, 0, 0],
    series: [
      {},
      {
        stroke: colour("--accent"),
        fill: colour("--accent", "30"),
        width: 2,
        paths: uPlot.paths.stepped({ align: 1 }),
        points: { show: false },
      },
    ],
    legend: { show: false },
    cursor: {
      sync: { key: "usage" },
      y: false,
      drag: { x: false, y: false },
      dataIdx: (plot, _, index, now) => (index > 0 && plot.data[0][index] > now ? index - 1 : index),
    },
    hooks: { setCursor: [(plot) => read(plot, reading, unit)] },
  };
}

// Say what is under the pointer.
function read(plot, reading, unit) {
  const index = plot.cursor.idxs?.[1];
  const [times, values] = plot.data;
  if (index == null) {
    reading.textContent = "";
    return;
  }
  const when = new Date(times[index] * 1000).toISOString().slice(0, 16).replace("T", " ");
  reading.textContent = `${when}: ${values[index]} ${unit}`;
}
