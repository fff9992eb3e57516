import { element, messageOf } from '../common.js';

/** @import { Api } from './api.js' */

const SVG = 'http://www.w3.org/2000/svg';

/**
 * A view of the console.
 * @typedef {object} View
 * @property {HTMLElement} element
 * @property {() => Promise<void>} refresh fetches and shows the present state
 */

/**
 * A heading with controls beside it.
 * @param {string} title
 * @param {(Node | string)[]} beside
 */
export function heading(title, ...beside) {
  return element(
    'div',
    { className: 'heading' },
    element('h1', {}, title),
    element('div', { className: 'beside' }, ...beside),
  );
}

/**
 * @typedef {object} ActionOptions
 * @property {string} [ask] question to confirm before the action
 * @property {string} [done] shown after it
 * @property {string} [className]
 */

/**
 * A button that runs an action and shows its result.
 * @param {string} text
 * @param {() => Promise<unknown>} action its error is shown
 * @param {ActionOptions} [options]
 */
export function actionButton(text, action, { ask, done, className = '' } = {}) {
  const button = element('button', { type: 'button', className, textContent: text });
  button.addEventListener('click', async () => {
    if (ask !== undefined && !confirm(ask)) return;
    button.disabled = true;
    try {
      await action();
      if (done !== undefined) say(done);
    } catch (error) {
      say(messageOf(error), true);
    } finally {
      button.disabled = false;
    }
  });
  return button;
}

/**
 * A button that changes something at the server; a hidden element for a read-only user.
 * @param {Api} api
 * @param {string} text
 * @param {() => Promise<unknown>} action
 * @param {ActionOptions} [options]
 * @returns {HTMLElement}
 */
export function changeButton(api, text, action, options) {
  return api.isReadOnly ? element('span', { hidden: true }) : actionButton(text, action, options);
}

/** @type {number | undefined} */
let saying;
/**
 * Shows a message for some seconds.
 * @param {string} text
 * @param {boolean} [isWrong]
 */
export function say(text, isWrong = false) {
  const place = document.getElementById('said') ?? element('p', { id: 'said', role: 'status' });
  place.role = 'status';
  place.className = isWrong ? 'said wrong' : 'said';
  if (!place.isConnected) document.body.append(place);
  place.textContent = text;
  clearTimeout(saying);
  saying = setTimeout(() => place.remove(), isWrong ? 12_000 : 4000);
}

/** A line of values, the newest on the right. */
export class Sparkline {
  element = document.createElementNS(SVG, 'svg');
  #line = document.createElementNS(SVG, 'polyline');
  /** @type {number[]} */
  #values = [];
  #most;

  /** @param {number} [most] values */
  constructor(most = 40) {
    this.#most = most;
    this.element.setAttribute('viewBox', '0 0 80 20');
    this.element.setAttribute('class', 'spark');
    this.element.setAttribute('aria-hidden', 'true');
    this.element.append(this.#line);
  }

  /** @param {number} value */
  add(value) {
    this.#values.push(value);
    if (this.#values.length > this.#most) this.#values.shift();
    const top = Math.max(...this.#values, 1);
    const step = 80 / (this.#most - 1);
    const from = this.#most - this.#values.length;
    const points = this.#values.map(
      (one, at) => `${((from + at) * step).toFixed(1)},${(19 - (one / top) * 18).toFixed(1)}`,
    );
    this.#line.setAttribute('points', points.join(' '));
  }
}

/**
 * A column of a table: either `value` or `cell` makes its cells.
 * @template Row
 * @typedef {object} Column
 * @property {string} title
 * @property {(row: Row) => string | number} [value] makes the text
 * @property {(row: Row) => string | number} [sort] makes the sort key
 * @property {boolean} [numeric] aligned right, and first sorted from the greatest on
 * @property {boolean} [falling] first sorted from the greatest on
 * @property {'short' | 'wide'} [width] `short` keeps texts on one line, `wide` is for long ones
 * @property {(row: Row) => Part<Row>} [cell] makes an element that stays while the row exists
 */
/**
 * @template Row
 * @typedef {HTMLElement | { element: HTMLElement, update: (row: Row) => void }} Part
 */

/** @param {Pick<Column<never>, 'numeric' | 'falling'>} column */
const falls = ({ numeric = false, falling = false }) => numeric || falling;

/**
 * A table, sorted by the column that was clicked last. Rows and cells stay the same elements while their row exists, so that
 * they keep the focus.
 * @template Row
 */
export class Table {
  element;
  #columns;
  #body = element('tbody');
  /** @type {Map<Column<Row>, HTMLElement>} */
  #heads = new Map();
  /** @type {Map<string, { element: HTMLElement, fill: (row: Row) => void }>} */
  #rows = new Map();
  /** Placeholder while there are no rows. */
  #none = element('p', { className: 'muted', textContent: 'Loading…' });
  #more = element('p', { className: 'muted', hidden: true });
  #empty;
  #most;
  #order;
  /** @type {{ key: string, data: Row }[]} */
  #data = [];

  /**
   * @param {string} caption
   * @param {readonly Column<Row>[]} columns
   * @param {string} empty text while there are no rows
   * @param {string} [first] title of the column to sort by at first
   * @param {number} [most] rows that are shown; the others have to be found by a filter
   */
  constructor(caption, columns, empty, first, most = Infinity) {
    this.#columns = columns;
    this.#most = most;
    const column = columns.find(({ title }) => title === first) ?? columns[0];
    this.#order = { column, down: column !== undefined && falls(column) };
    this.#empty = empty;
    this.element = element(
      'div',
      { className: 'scroll', tabIndex: 0, role: 'region', ariaLabel: caption },
      element(
        'table',
        {},
        element('caption', { className: 'unseen' }, caption),
        element('thead', {}, element('tr', {}, ...columns.map((one) => this.#head(one)))),
        this.#body,
      ),
      this.#none,
      this.#more,
    );
  }

  /**
   * Shows these rows and no others, and of many the first ones.
   * @param {readonly Row[]} rows
   * @param {(row: Row) => string} keyOf unique in the table
   */
  show(rows, keyOf) {
    this.#data = rows.map((data) => ({ key: keyOf(data), data }));
    this.#none.textContent = this.#empty;
    this.#none.hidden = rows.length > 0;
    this.#more.textContent = `The first ${this.#most} of ${rows.length} are shown.`;
    this.#more.hidden = rows.length <= this.#most;
    this.#arrange();
  }

  /** @param {Column<Row>} column */
  #head(column) {
    const { title, numeric, sort } = column;
    const head = element('th', { scope: 'col', className: numeric ? 'numeric' : '' });
    if (sort === undefined) {
      head.append(element('span', { className: title === '' ? 'unseen' : '' }, title || 'Actions'));
      return head;
    }
    this.#heads.set(column, head);
    const button = element('button', { type: 'button', className: 'sort', textContent: title });
    button.addEventListener('click', () => this.#sortBy(column));
    head.append(button);
    return head;
  }

  /** @param {Row} data */
  #make(data) {
    const cells = this.#columns.map(({ numeric, width = '', cell, value }) => {
      const made = element('td', { className: numeric ? 'numeric' : width });
      const part = cell?.(data);
      if (part !== undefined) made.append(part instanceof HTMLElement ? part : part.element);
      /** @param {Row} row */
      const fill = (row) => {
        if (part !== undefined) return part instanceof HTMLElement ? undefined : part.update(row);
        const text = `${value?.(row)}`;
        if (made.textContent !== text) made.textContent = text;
      };
      return { element: made, fill };
    });
    return {
      element: element('tr', {}, ...cells.map((one) => one.element)),
      /** @param {Row} row */
      fill: (row) => cells.forEach((one) => one.fill(row)),
    };
  }

  /** @param {Column<Row>} column */
  #sortBy(column) {
    this.#order = { column, down: this.#order.column === column ? !this.#order.down : falls(column) };
    this.#arrange();
  }

  #arrange() {
    const { column, down } = this.#order;
    for (const [one, head] of this.#heads) head.ariaSort = one !== column ? 'none' : down ? 'descending' : 'ascending';
    const sort = column?.sort ?? (() => 0);
    const sorted = this.#data.toSorted((one, other) => {
      const [a, b] = [sort(one.data), sort(other.data)];
      const order = a < b ? -1 : a > b ? 1 : 0;
      return down ? -order : order;
    });
    const first = sorted.slice(0, this.#most);
    const keys = new Set(first.map(({ key }) => key));
    for (const [key, row] of this.#rows) {
      if (keys.has(key)) continue;
      row.element.remove();
      this.#rows.delete(key);
    }
    first.forEach(({ key, data }, index) => {
      const row = this.#rows.get(key) ?? this.#make(data);
      this.#rows.set(key, row);
      row.fill(data);
      const present = this.#body.children[index];
      if (present !== row.element) this.#body.insertBefore(row.element, present ?? null);
    });
  }
}

/**
 * A list of names and values; undefined is shown as a dash.
 * @param {readonly (readonly [name: string, value: Node | string | undefined])[]} entries
 */
export function facts(entries) {
  return element(
    'dl',
    { className: 'facts' },
    ...entries.flatMap(([name, value]) => [element('dt', {}, name), element('dd', {}, value ?? '–')]),
  );
}

/** A choice among names, hidden while there are fewer than two. */
export class Choice {
  #select;
  element;
  /** Called when the user has chosen. */
  onChoice = () => {};

  /**
   * @param {string} id
   * @param {string} label
   */
  constructor(id, label) {
    this.#select = element('select', { id });
    this.#select.addEventListener('change', () => this.onChoice());
    this.element = element(
      'p',
      { className: 'inline', hidden: true },
      element('label', { htmlFor: id }, label),
      this.#select,
    );
  }

  /**
   * Shows these names. The same ones are left alone: the user may have the choice open.
   * @param {readonly string[]} names
   */
  show(names) {
    this.element.hidden = names.length < 2;
    const { options, value } = this.#select;
    if (JSON.stringify(Array.from(options, (option) => option.value)) === JSON.stringify(names)) return;
    this.#select.replaceChildren(...names.map((name) => element('option', { value: name, textContent: name })));
    if (names.includes(value)) this.#select.value = value;
  }

  /** Name that is chosen; undefined while there is none. */
  get chosen() {
    return this.#select.value || undefined;
  }
}
