import { element } from '../common.js';
import { heading, Table } from './parts.js';

/** @import { LoggedEvent } from '../answers.ts' */
/** @import { Api } from './api.js' */
/** @import { Column, View } from './parts.js' */

const COUNT = 500;
/** Fields that have a column of their own. */
const PLACED = new Set(['time', 'node', 'level', 'event', 'msg', 'stream', 'module']);

/**
 * Time of day, with the date unless it is today's.
 * @param {string} time
 */
export function clock(time) {
  const at = new Date(time);
  return at.toDateString() === new Date().toDateString() ? at.toLocaleTimeString() : at.toLocaleString();
}

/** @typedef {LoggedEvent & { place: number }} Row with its place in the answer */

/** @param {Row} row */
const streamOf = ({ stream = '' }) => stream;

/** @type {Column<Row>[]} */
const COLUMNS = [
  { title: 'Time', width: 'short', value: ({ time }) => clock(time), sort: ({ place }) => place, falling: true },
  { title: 'Level', cell: levelCell, sort: ({ level }) => level },
  { title: 'Event', value: ({ event }) => event, sort: ({ event }) => event },
  { title: 'Stream', value: streamOf, sort: streamOf },
  { title: 'What', width: 'wide', value: textOf, sort: ({ msg }) => msg },
  { title: 'Node', value: ({ node }) => node, sort: ({ node }) => node },
];

/**
 * A table of main events, the newest on top.
 * @param {string} caption
 */
export function eventTable(caption) {
  const table = new Table(caption, COLUMNS, 'Nothing has happened yet.');
  return {
    element: table.element,
    /** @param {readonly LoggedEvent[]} events */
    show: (events) => {
      /** @type {Map<string, number>} */
      const seen = new Map();
      const rows = events.map((event, place) => ({ ...event, place }));
      // several lines of a node may have one time
      table.show(rows, (row) => {
        const key = `${row.node} ${row.time} ${row.event} ${row.stream}`;
        const times = (seen.get(key) ?? 0) + 1;
        seen.set(key, times);
        return `${key} ${times}`;
      });
    },
  };
}

/** @param {Row} row */
function levelCell({ level }) {
  return element('span', { className: `level ${level}` }, level);
}

/** @param {Row} event */
function textOf(event) {
  const others = Object.entries(event).filter(([name]) => !PLACED.has(name) && name !== 'place');
  const fields = others.map(([name, value]) => `${name}=${typeof value === 'object' ? JSON.stringify(value) : value}`);
  return [event.msg, ...fields].join(' ');
}

/**
 * The newest main events of all nodes.
 * @param {Api} api
 * @returns {View}
 */
export function eventsView(api) {
  const filter = element('input', {
    type: 'search',
    id: 'filter',
    placeholder: 'Event, stream, address',
    autocomplete: 'off',
  });
  const table = eventTable('Events');
  /** @type {LoggedEvent[]} */
  let events = [];
  const show = () => {
    const wanted = filter.value.trim().toLowerCase();
    table.show(events.filter((event) => JSON.stringify(event).toLowerCase().includes(wanted)));
  };
  filter.addEventListener('input', show);
  return {
    element: element(
      'div',
      {},
      heading('Events', element('label', { htmlFor: 'filter', className: 'unseen' }, 'Filter'), filter),
      table.element,
    ),
    refresh: async () => {
      events = await api.events(COUNT);
      show();
    },
  };
}
