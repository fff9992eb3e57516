import { element } from '../common.js';
import { heading, Table } from './parts.js';

const COUNT = 500;
/** What has a column of its own. */
const PLACED = new Set(['time', 'node', 'level', 'event', 'msg', 'stream', 'module']);

/** The time of day, and the date of another day. */
function clock(time) {
  const at = new Date(time);
  return at.toDateString() === new Date().toDateString() ? at.toLocaleTimeString() : at.toLocaleString();
}

/** A table of main events; those that come are on top. */
export function eventTable(caption) {
  const table = new Table(
    caption,
    [
      { title: 'Time', width: 'short', value: ({ time }) => clock(time), sort: ({ place }) => place, falling: true },
      { title: 'Level', cell: levelCell, sort: ({ level }) => level },
      { title: 'Event', value: ({ event }) => event, sort: ({ event }) => event },
      { title: 'Stream', value: ({ stream }) => stream ?? '', sort: ({ stream }) => stream ?? '' },
      { title: 'What', width: 'wide', value: textOf, sort: ({ msg }) => msg },
      { title: 'Node', value: ({ node }) => node, sort: ({ node }) => node },
    ],
    'Nothing has happened yet.',
  );
  return {
    element: table.element,
    show: (events) => {
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

function levelCell({ level }) {
  return element('span', { className: `level ${level}` }, level);
}

function textOf(event) {
  const others = Object.entries(event).filter(([name]) => !PLACED.has(name) && name !== 'place');
  const fields = others.map(([name, value]) => `${name}=${typeof value === 'object' ? JSON.stringify(value) : value}`);
  return [event.msg, ...fields].join(' ');
}

/** What has happened lately on all nodes. */
export function eventsView(api) {
  const filter = element('input', {
    type: 'search',
    id: 'filter',
    placeholder: 'Event, stream, address',
    autocomplete: 'off',
  });
  const table = eventTable('Events');
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
      events = await api.get(`/v1/cluster/events?count=${COUNT}`);
      show();
    },
  };
}
