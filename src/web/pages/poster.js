import { element } from './common.js';

const SVG = 'http://www.w3.org/2000/svg';
const [WIDTH, HEIGHT] = [320, 180];
const BARS = 33;
const WAVES = 5;

function shape(tag, attributes) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

/** Numbers from 0 to 1 that a name has for itself. */
function numbersOf(name) {
  let state = 2166136261;
  for (const unit of name) state = Math.imul(state ^ unit.codePointAt(0), 16777619);
  return () => {
    state = Math.imul(state ^ (state >>> 15), 2246822507) + 0x9e3779b9;
    return ((state ^ (state >>> 13)) >>> 0) / 2 ** 32;
  };
}

/** What is drawn where there is no picture: waves for a video, the bars of a sound where there is nothing else. */
function drawing(name, isAudio) {
  const next = numbersOf(name);
  const svg = shape('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'xMidYMid slice' });
  svg.setAttribute('aria-hidden', 'true');
  const parts = isAudio ? bars(next) : waves(next);
  svg.append(...parts);
  return svg;
}

function bars(next) {
  const step = WIDTH / (BARS + 7);
  return Array.from({ length: BARS }, (_, at) => {
    const swell = Math.sin(((at + 0.5) / BARS) * Math.PI);
    const height = 8 + 88 * swell * (0.25 + 0.75 * next());
    const bar = { x: (at + 3.75) * step, y: (HEIGHT - height) / 2, width: step * 0.5, height, rx: step * 0.25 };
    return shape('rect', { ...bar, class: 'wave' });
  });
}

function waves(next) {
  return Array.from({ length: WAVES }, (_, at) => {
    const level = HEIGHT * (0.3 + 0.15 * at);
    const [one, other] = [next(), next()].map((value) => (value - 0.5) * 90);
    const path = `M0 ${level + one}C${WIDTH * 0.35} ${level - one} ${WIDTH * 0.6} ${level + other} ${WIDTH} ${level - other}V${HEIGHT + 2}H0Z`;
    return shape('path', { d: path, class: 'wave' });
  });
}

/**
 * The picture of a stream: its newest thumbnail where there is one, a drawing of its own until that has come and where there
 * is none.
 */
export class Poster {
  element = element('div', { className: 'poster' });
  #image;
  #isAudio;
  #name;

  constructor(name) {
    this.#name = name;
    this.element.style.setProperty('--hue', `${Math.round(numbersOf(name)() * 360)}`);
  }

  /** Draws what stands where there is no picture. */
  draw(isAudio) {
    if (isAudio === this.#isAudio) return;
    this.#isAudio = isAudio;
    this.element.querySelector('svg')?.remove();
    this.element.prepend(drawing(this.#name, isAudio));
  }

  /** Shows a picture when it has come. @param url undefined: there is none */
  async show(url) {
    if (url === undefined) {
      this.#image?.remove();
      this.#image = undefined;
      return;
    }
    const image = element('img', { src: url, alt: '', decoding: 'async' });
    try {
      await image.decode();
    } catch {
      // the picture before it is better than none
      return;
    }
    if (this.#image === undefined) this.element.append(image);
    else this.#image.replaceWith(image);
    this.#image = image;
  }
}
