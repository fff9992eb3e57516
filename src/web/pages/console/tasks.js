import { age, element } from '../common.js';
import { ApiError, appPath } from './api.js';
import { changeButton, heading, Table } from './parts.js';

/** The recordings or pushes of some applications. */
export async function listTasks(api, applications, kind) {
  const lists = await Promise.all(applications.map((one) => listOf(api, one, kind)));
  return lists.flat();
}

/** None where the application has no publisher for them. */
async function listOf(api, application, kind) {
  try {
    return await api.get(`${appPath(application)}:${kind}`);
  } catch (error) {
    if (error instanceof ApiError && (error.status === 403 || error.status === 404)) return [];
    throw error;
  }
}

const bytes = (count) => (count < 1e6 ? `${Math.round(count / 1000)} kB` : `${(count / 1e6).toFixed(1)} MB`);
const taskKey = ({ vhost, app, id }) => JSON.stringify([vhost, app, id]);
const streamOf = ({ vhost, app, stream }) => `${vhost} / ${app} / ${stream.name}`;

/** A column that stops a task, unless it is of the configuration. */
const stopColumn = (api, action) => ({
  title: '',
  cell: ({ vhost, app, id, isConfig }) => {
    const stop = () => api.call('POST', `${appPath({ vhost, app })}:${action}`, { id });
    const button = changeButton(api, 'Stop', stop, { ask: `Stop ${id}?`, done: `${id} was stopped` });
    button.hidden ||= isConfig === true;
    return button;
  },
});

/** Fields that both kinds of tasks have. */
const COMMON = [
  { title: 'Id', value: ({ id }) => id, sort: ({ id }) => id },
  { title: 'Stream', value: streamOf, sort: streamOf },
  {
    title: 'State',
    value: ({ state, reason }) => (reason ? `${state}: ${reason}` : state),
    sort: ({ state }) => state,
  },
];

/** A column of a number that may not be known yet. */
const number = (title, key, text) => ({
  title,
  numeric: true,
  value: (row) => text(row[key] ?? 0),
  sort: (row) => row[key] ?? 0,
});

/** Recordings as `:records` lists them. */
export function recordTable(api) {
  const file = ({ outputFilePath, filePath }) => outputFilePath ?? filePath ?? '–';
  const columns = [
    ...COMMON,
    { title: 'File', width: 'wide', value: file, sort: file },
    number('Length', 'totalRecordTime', age),
    number('Size', 'totalRecordBytes', bytes),
    stopColumn(api, 'stopRecord'),
  ];
  return new Table('Recordings', columns, 'Nothing is being recorded.');
}

/** Pushes as `:pushes` lists them. */
export function pushTable(api) {
  const columns = [
    ...COMMON,
    { title: 'To', width: 'wide', value: ({ url }) => url, sort: ({ url }) => url },
    number('Sent', 'totalsentBytes', bytes),
    stopColumn(api, 'stopPush'),
  ];
  return new Table('Pushes', columns, 'Nothing is being pushed.');
}

/** Shows tasks in a table. */
export const showTasks = (table, tasks) => table.show(tasks, taskKey);

/** The recordings and pushes of all applications. */
export function tasksView(api) {
  const [records, pushes] = [recordTable(api), pushTable(api)];
  return {
    element: element(
      'div',
      {},
      heading('Recordings and pushes'),
      element('h2', {}, 'Recordings'),
      records.element,
      element('h2', {}, 'Pushes'),
      pushes.element,
    ),
    refresh: async () => {
      const applications = await api.applications();
      const [recorded, pushed] = await Promise.all([
        listTasks(api, applications, 'records'),
        listTasks(api, applications, 'pushes'),
      ]);
      showTasks(records, recorded);
      showTasks(pushes, pushed);
    },
  };
}
