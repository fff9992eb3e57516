import { element } from '../common.js';
import { marksOf, placeOf } from '../rewind-times.js';

/** @import { RecordedFile } from '../answers.ts' */
/** @import { Span } from '../rewind-times.js' */

/** Streams that are drawn; the others are found by the filter. */
const MAX_LANES = 20;
const MARKS = 6;

/**
 * A day in the form that a date input has it.
 * @param {Date} date
 */
export function dayText(date) {
  const two = (/** @type {number} */ value) => `${value}`.padStart(2, '0');
  return `${`${date.getFullYear()}`.padStart(4, '0')}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/**
 * A day of the viewer's time zone, which may have 23 or 25 hours.
 * @param {string} text of a date input
 * @returns {Span | undefined} undefined for no day, or one of which the API cannot be asked
 */
export function dayOf(text) {
  const [, year, month, day] = /^(\d{4})-(\d\d)-(\d\d)$/.exec(text)?.map(Number) ?? [];
  if (year === undefined || month === undefined || day === undefined || year < 100 || year > 9998) return undefined;
  return { from: new Date(year, month - 1, day).getTime(), to: new Date(year, month - 1, day + 1).getTime() };
}

/**
 * @typedef {object} Bar
 * @property {RecordedFile} file
 * @property {number} left 0 to 1
 * @property {number} width 0 to 1
 */

/**
 * Bars of the files of each stream, in the order of names.
 * @param {Span} day
 * @param {readonly RecordedFile[]} files
 * @returns {[stream: string, bars: Bar[]][]}
 */
export function lanesOf(day, files) {
  /** @type {Map<string, Bar[]>} */
  const lanes = new Map();
  for (const file of files) {
    const left = placeOf(day, Date.parse(file.startTime));
    const width = placeOf(day, Date.parse(file.finishTime)) - left;
    const bars = lanes.get(file.stream) ?? [];
    lanes.set(file.stream, bars);
    bars.push({ file, left, width: Math.max(0, width) });
  }
  return [...lanes].sort(([one], [other]) => (one < other ? -1 : 1));
}

/** @param {number} place 0 to 1 */
const percent = (place) => `${(place * 100).toFixed(3)}%`;

/** A line for each stream with its files of a day. The table beside it has the same for assistive technology. */
export class DayBars {
  element = element('div', { className: 'day', ariaHidden: 'true', hidden: true });
  #onChoice;

  /** @param {(file: RecordedFile) => void} onChoice called for a bar that is clicked */
  constructor(onChoice) {
    this.#onChoice = onChoice;
  }

  /**
   * @param {Span} day
   * @param {readonly RecordedFile[]} files
   * @param {number} most files that are drawn
   */
  show(day, files, most) {
    const lanes = lanesOf(day, files.slice(0, most));
    const hours = marksOf(day, MARKS).filter(({ date }) => date > day.from && date < day.to);
    const marks = hours.map(({ date, text }) => {
      const mark = element('span', {}, text);
      mark.style.left = percent(placeOf(day, date));
      return mark;
    });
    const rest = [
      ...(lanes.length > MAX_LANES ? [`The first ${MAX_LANES} of ${lanes.length} streams are drawn.`] : []),
      ...(files.length > most ? [`The first ${most} files are drawn.`] : []),
    ];
    this.element.replaceChildren(
      ...lanes.slice(0, MAX_LANES).map(([stream, bars]) => this.#lane(stream, bars)),
      element('div', { className: 'day-lane' }, element('span'), element('div', { className: 'day-hours' }, ...marks)),
      ...rest.map((text) => element('p', { className: 'muted' }, text)),
    );
    this.element.hidden = lanes.length === 0;
  }

  /**
   * @param {string} stream
   * @param {readonly Bar[]} bars
   */
  #lane(stream, bars) {
    const drawn = bars.map(({ file, left, width }) => {
      const [from, to] = [file.startTime, file.finishTime].map((time) => new Date(time).toLocaleTimeString());
      const bar = element('div', {
        className: `day-bar ${file.upload?.state ?? ''}`,
        title: `${stream}, ${from} – ${to}`,
      });
      Object.assign(bar.style, { left: percent(left), width: percent(width) });
      bar.addEventListener('click', () => this.#onChoice(file));
      return bar;
    });
    const name = element('span', { className: 'day-name', title: stream }, stream);
    return element('div', { className: 'day-lane' }, name, element('div', { className: 'day-bars' }, ...drawn));
  }
}
