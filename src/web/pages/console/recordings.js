import { age, element } from '../common.js';
import { appPath } from './api.js';
import { DayBars, dayOf, dayText } from './day-bars.js';
import { clock } from './events.js';
import { changeButton, Choice, heading, Table } from './parts.js';
import { PlayAddresses, RecordedLinks } from './recorded-links.js';
import { bytes } from './tasks.js';

/** @import { RecordedFile, RecordedPage } from '../answers.ts' */
/** @import { Api, AppName } from './api.js' */
/** @import { View } from './parts.js' */

/** Files of one page of the table. */
const PAGE = 50;
/** Files that are drawn of a day, and those of one answer. */
const MAX_DRAWN = 2000;
const DRAWN_PAGE = 500;
/** Answers without a file, but with a cursor, that are looked through for one page. */
const MAX_EMPTY = 20;

/** @param {AppName} application */
const named = ({ vhost, app }) => `${vhost} / ${app}`;

/**
 * State of the delivery of a file.
 * @param {RecordedFile} file
 */
function delivery({ upload, isLocal }) {
  if (upload === undefined) return '–';
  if (upload.state === 'uploaded') return isLocal ? 'uploaded' : 'uploaded, no longer on the node';
  return upload.state === 'waiting' ? 'waits for its upload' : 'the upload failed';
}

/** @param {RecordedFile} file */
const pathOf = ({ type, path }) => (type === 'dump' ? `HLS dump: ${path}` : path);

/** The finished files of recordings of an application, page by page, and those of a day as bars. */
class RecordedFiles {
  #api;
  #applications = new Choice('application', 'Application');
  #addresses = new PlayAddresses();
  /** @type {AppName[]} */
  #found = [];
  #day = element('input', { type: 'date', id: 'day', value: dayText(new Date()) });
  #stream = element('input', { type: 'search', id: 'stream', autocomplete: 'off', maxLength: 255 });
  #recordId = element('input', { type: 'search', id: 'recording', autocomplete: 'off', maxLength: 255 });
  #table;
  #bars;
  /** Cursors with which the pages up to the present one begin. @type {string[]} */
  #cursors = [''];
  #next = '';
  #text = element('span', { className: 'muted' });
  #backButton = element('button', { type: 'button', textContent: 'Previous' });
  #onButton = element('button', { type: 'button', textContent: 'Next' });
  #pages = element('p', { className: 'inline pages', hidden: true }, this.#backButton, this.#onButton, this.#text);
  #silent = element('p', { className: 'wrong', hidden: true });
  /** Query and first page of the bars. */
  #drawn = '';
  element;

  /** @param {Api} api */
  constructor(api) {
    this.#api = api;
    this.#table = this.#makeTable();
    this.#bars = new DayBars(({ id }) => this.#turn(() => this.#cursors.push(id.slice(0, id.indexOf('-')))));
    const filters = element(
      'div',
      { className: 'inline filters', role: 'search', ariaLabel: 'Recorded files' },
      this.#applications.element,
      element(
        'p',
        { className: 'inline' },
        element('label', { htmlFor: 'day' }, 'Day'),
        this.#dayButton('‹', 'Day before', -1),
        this.#day,
        this.#dayButton('›', 'Day after', 1),
      ),
      element('p', { className: 'inline' }, element('label', { htmlFor: 'stream' }, 'Stream'), this.#stream),
      element('p', { className: 'inline' }, element('label', { htmlFor: 'recording' }, 'Recording'), this.#recordId),
    );
    const restart = () => this.#turn(() => (this.#cursors = ['']));
    for (const input of [this.#day, this.#stream, this.#recordId]) input.addEventListener('change', restart);
    this.#applications.onChoice = restart;
    this.#backButton.addEventListener('click', () => this.#turn(() => this.#cursors.pop()));
    this.#onButton.addEventListener('click', () => this.#turn(() => this.#cursors.push(this.#next)));
    this.element = element(
      'div',
      {},
      heading('Recorded files'),
      filters,
      this.#silent,
      this.#bars.element,
      this.#table.element,
      this.#pages,
    );
  }

  /** @returns {Promise<void>} */
  async refresh() {
    this.#found = await this.#api.applications();
    this.#applications.show(this.#found.map(named));
    const path = this.#path();
    const cursor = this.#cursors.at(-1) ?? '';
    const [page] = await Promise.all([
      path === undefined ? { recordings: [] } : this.#page(path, cursor),
      this.#addresses.refresh(this.#api, this.#application()),
    ]);
    // the user has asked for something else since
    if (path !== this.#path() || cursor !== this.#cursors.at(-1)) return;
    if (page.recordings.length === 0 && this.#cursors.length > 1) {
      this.#cursors.pop();
      return this.refresh();
    }
    this.#show(page);
    if (path !== undefined) await this.#draw(path, page);
  }

  /** The chosen one; undefined while there is none. */
  #application() {
    return this.#found.find((one) => named(one) === this.#applications.chosen);
  }

  /** Path and filters of the list; undefined while there is no application. */
  #path() {
    const application = this.#application();
    if (application === undefined) return undefined;
    const query = new URLSearchParams();
    const [stream, recordId, day] = [this.#stream.value.trim(), this.#recordId.value.trim(), dayOf(this.#day.value)];
    if (stream !== '') query.set('stream', stream);
    if (recordId !== '') query.set('recordId', recordId);
    if (day !== undefined) {
      query.set('start', new Date(day.from).toISOString());
      query.set('end', new Date(day.to).toISOString());
    }
    return `${appPath(application)}/recordings?${query}`;
  }

  /**
   * @param {string} path
   * @param {string} cursor
   * @param {number} [limit]
   * @returns {Promise<RecordedPage>} without a file at the end only
   */
  async #page(path, cursor, limit = PAGE) {
    for (let next = cursor, empty = 0; ; empty++) {
      const query = new URLSearchParams({ limit: `${limit}`, ...(next !== '' && { cursor: next }) });
      /** @type {RecordedPage} */
      const page = await this.#api.get(`${path}&${query}`);
      if (page.recordings.length > 0 || page.cursor === undefined || empty === MAX_EMPTY) return page;
      next = page.cursor;
    }
  }

  /** @param {RecordedPage} page */
  #show({ recordings, cursor, silentNodes = [] }) {
    this.#table.show(recordings, ({ id }) => id);
    this.#next = cursor ?? '';
    this.#backButton.disabled = this.#cursors.length === 1;
    this.#onButton.disabled = cursor === undefined;
    this.#pages.hidden = this.#backButton.disabled && this.#onButton.disabled;
    this.#text.textContent = `Page ${this.#cursors.length}`;
    this.#silent.hidden = silentNodes.length === 0;
    this.#silent.textContent = `Files of these nodes are missing, as they did not answer: ${silentNodes.join(', ')}`;
  }

  /**
   * Draws all files of the day, when something of what is listed has changed.
   * @param {string} path
   * @param {RecordedPage} first page of the table
   */
  async #draw(path, first) {
    const day = dayOf(this.#day.value);
    this.#bars.element.hidden = day === undefined;
    const drawn = JSON.stringify([path, first]);
    if (day === undefined || drawn === this.#drawn) return;
    /** @type {RecordedFile[]} */
    const files = [];
    for (let cursor = ''; files.length < MAX_DRAWN;) {
      const page = await this.#page(path, cursor, DRAWN_PAGE);
      files.push(...page.recordings);
      if (page.cursor === undefined) break;
      cursor = page.cursor;
    }
    if (path !== this.#path()) return;
    this.#drawn = drawn;
    this.#bars.show(day, files, MAX_DRAWN);
  }

  /**
   * @param {string} text
   * @param {string} name
   * @param {number} by days
   */
  #dayButton(text, name, by) {
    const button = element('button', { type: 'button', textContent: text, ariaLabel: name });
    button.addEventListener('click', () =>
      this.#turn(() => {
        const from = new Date(dayOf(this.#day.value)?.from ?? Date.now());
        this.#day.value = dayText(new Date(from.getFullYear(), from.getMonth(), from.getDate() + by));
        this.#cursors = [''];
      }),
    );
    return button;
  }

  /** @param {() => void} change */
  #turn(change) {
    change();
    this.#backButton.disabled = true;
    this.#onButton.disabled = true;
    // the next refresh of the whole view shows what goes wrong
    this.refresh().catch(() => undefined);
  }

  /** @returns {Table<RecordedFile>} */
  #makeTable() {
    /** @param {RecordedFile} file */
    const remove = ({ vhost, app, id, type, path, node }) =>
      changeButton(
        this.#api,
        'Delete',
        async () => {
          await this.#api.call('DELETE', `${appPath({ vhost, app })}/recordings/${encodeURIComponent(id)}`);
          this.#turn(() => {});
        },
        {
          ask: `Delete ${type === 'dump' ? `the HLS dump ${path} with its segments` : path} on ${node}? What was uploaded stays in its bucket.`,
          done: `${path} was deleted`,
        },
      );
    return new Table(
      'Recorded files',
      [
        {
          title: 'Begin',
          width: 'short',
          value: ({ startTime }) => clock(startTime),
          sort: ({ startTime }) => Date.parse(startTime),
        },
        { title: 'Stream', value: ({ stream }) => stream, sort: ({ stream }) => stream },
        {
          title: 'Length',
          numeric: true,
          value: ({ duration }) => age(duration * 1000),
          sort: ({ duration }) => duration,
        },
        { title: 'Size', numeric: true, value: ({ size }) => bytes(size), sort: ({ size }) => size },
        { title: 'Delivery', value: delivery, sort: delivery },
        { title: 'Play', width: 'short', cell: () => new RecordedLinks(this.#addresses) },
        { title: '', cell: remove },
        { title: 'Recording', value: ({ recordId }) => recordId, sort: ({ recordId }) => recordId },
        { title: 'File', width: 'wide', value: pathOf, sort: pathOf },
        { title: 'Node', value: ({ node }) => node, sort: ({ node }) => node },
      ],
      'There is no such file.',
    );
  }
}

/**
 * The finished files of the recordings of all applications.
 * @param {Api} api
 * @returns {View}
 */
export const recordingsView = (api) => new RecordedFiles(api);
