import { element } from '../common.js';

const SVG = 'http://www.w3.org/2000/svg';

/** A heading with what can be done beside it. */
export function heading(title, ...beside) {
  return element(
    'div',
    { className: 'heading' },
    element('h1', {}, title),
    element('div', { className: 'beside' }, ...beside),
  );
}

/**
 * A button that does something and says what came of it.
 * @param action throws what is shown
 * @param ask what is asked before; without it nothing is
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
      say(error.message, true);
    } finally {
      button.disabled = false;
    }
  });
  return button;
}

/** A button that changes something at the server: there is none for who may only look. */
export function changeButton(api, text, action, options) {
  return api.isReadOnly ? element('span', { hidden: true }) : actionButton(text, action, options);
}

let saying;
/** Tells what came of something, for some seconds. */
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
  #values = [];
  #most;

  constructor(most = 40) {
    this.#most = most;
    this.element.setAttribute('viewBox', '0 0 80 20');
    this.element.setAttribute('class', 'spark');
    this.element.setAttribute('aria-hidden', 'true');
    this.element.append(this.#line);
  }

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

const falls = ({ numeric = false, falling = false }) => numeric || falling;

/**
 * A table that is sorted by the column that is clicked. Rows and cells stay the same elements while their row exists, so
 * what is focused stays focused.
 */
export class Table {
  element;
  #columns;
  #body = element('tbody');
  #heads = [];
  #rows = new Map();
  /** Stands for rows where there are none. */
  #none = element('p', { className: 'muted', textContent: 'Loading…' });
  /** Tells of rows that are not shown. */
  #more = element('p', { className: 'muted', hidden: true });
  #empty;
  #most;
  #order;
  /** All rows, with their keys. */
  #data = [];

  /**
   * @param columns `{ title, value(row), sort(row), numeric, falling, width, cell(row) }`: `value` makes the text, `sort` what is
   *   compared, from the greatest on at first where it is `numeric` or `falling`, `cell` an element that stays while the row
   *   exists, and hears of changes by `update(row)`; `width` is `short` for what stays on one line, `wide` for long texts
   * @param empty what is said when there are no rows
   * @param first title of the column that it is sorted by at first
   * @param most so many rows are shown: what is left out has to be found by a filter
   */
  constructor(caption, columns, empty, first = columns[0].title, most = Infinity) {
    this.#columns = columns;
    this.#most = most;
    const at = columns.findIndex(({ title }) => title === first);
    this.#order = { at, down: falls(columns[at]) };
    this.#empty = empty;
    const heads = columns.map((column, at) => {
      const head = element('th', { scope: 'col', className: column.numeric ? 'numeric' : '' });
      this.#heads.push(head);
      if (column.sort === undefined) {
        head.append(element('span', { className: column.title === '' ? 'unseen' : '' }, column.title || 'Actions'));
        return head;
      }
      const button = element('button', { type: 'button', className: 'sort', textContent: column.title });
      button.addEventListener('click', () => this.#sortBy(at));
      head.append(button);
      return head;
    });
    this.element = element(
      'div',
      { className: 'scroll', tabIndex: 0, role: 'region', ariaLabel: caption },
      element(
        'table',
        {},
        element('caption', { className: 'unseen' }, caption),
        element('thead', {}, element('tr', {}, ...heads)),
        this.#body,
      ),
      this.#none,
      this.#more,
    );
  }

  /** Shows these rows and no others, and of many the first ones. @param keyOf what tells one row from the others */
  show(rows, keyOf) {
    this.#data = rows.map((data) => ({ key: keyOf(data), data }));
    this.#none.textContent = this.#empty;
    this.#none.hidden = rows.length > 0;
    this.#more.textContent = `The first ${this.#most} of ${rows.length} are shown.`;
    this.#more.hidden = rows.length <= this.#most;
    this.#arrange();
  }

  #make(data) {
    const cells = this.#columns.map(({ numeric, width = '', cell }) => {
      const made = element('td', { className: numeric ? 'numeric' : width });
      const part = cell?.(data);
      if (part !== undefined) made.append(part.element ?? part);
      return { element: made, part };
    });
    return { element: element('tr', {}, ...cells.map((one) => one.element)), cells };
  }

  #fill({ cells }, data) {
    this.#columns.forEach(({ value }, at) => {
      const { element: cell, part } = cells[at];
      if (part !== undefined) part.update?.(data);
      else if (cell.textContent !== `${value(data)}`) cell.textContent = value(data);
    });
  }

  #sortBy(at) {
    this.#order = { at, down: this.#order.at === at ? !this.#order.down : falls(this.#columns[at]) };
    this.#arrange();
  }

  #arrange() {
    const { at, down } = this.#order;
    this.#heads.forEach((head, index) => {
      if (this.#columns[index].sort !== undefined)
        head.ariaSort = index !== at ? 'none' : down ? 'descending' : 'ascending';
    });
    const { sort } = this.#columns[at];
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
      this.#fill(row, data);
      const present = this.#body.children[index];
      if (present !== row.element) this.#body.insertBefore(row.element, present ?? null);
    });
  }
}

/** Names and values, one under the other. */
export function facts(entries) {
  return element(
    'dl',
    { className: 'facts' },
    ...entries.flatMap(([name, value]) => [element('dt', {}, name), element('dd', {}, value ?? '–')]),
  );
}

/** A choice among names, which is not shown while there are fewer than two. */
export class Choice {
  #select;
  element;
  /** Called when the user has chosen. */
  onChoice = () => {};

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

  /** What stays the same is left alone: the user may have it open. */
  show(names) {
    this.element.hidden = names.length < 2;
    const { options, value } = this.#select;
    if (JSON.stringify(Array.from(options, (option) => option.value)) === JSON.stringify(names)) return;
    this.#select.replaceChildren(...names.map((name) => element('option', { value: name, textContent: name })));
    if (names.includes(value)) this.#select.value = value;
  }

  /** undefined while there is none. */
  get chosen() {
    return this.#select.value || undefined;
  }
}
