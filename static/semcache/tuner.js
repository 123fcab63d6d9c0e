// The threshold tuner: shows the figures of the slider's place, which the page brought along. Asks nobody.

const LOWEST = 0.8;
const WIDTH = 800;

const slider = document.getElementById("threshold");
const line = document.getElementById("threshold-line");
const source = document.getElementById("curve");

if (source) {
  const curve = JSON.parse(source.textContent);
  const show = () => draw(nearest(curve, Number(slider.value)));
  slider.addEventListener("input", show);
  show();
}

function nearest(curve, threshold) {
  const distance = (point) => Math.abs(point.threshold - threshold);
  return curve.reduce((best, point) => (distance(point) < distance(best) ? point : best));
}

function draw(point) {
  const said = {
    threshold: point.threshold.toFixed(3),
    num_served: String(point.num_served),
    rate: `${(point.rate * 100).toFixed(1)} %`,
    num_wrong: String(point.num_wrong),
  };
  for (const place of document.querySelectorAll("[data-figure]")) {
    place.textContent = said[place.dataset.figure];
  }
  const x = (Math.max(point.threshold - LOWEST, 0) / (1 - LOWEST)) * WIDTH;
  line.setAttribute("x1", x);
  line.setAttribute("x2", x);
  line.setAttribute("visibility", "visible");
}
