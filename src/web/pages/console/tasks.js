import { age, element } from '../common.js';
import { ApiError, appPath } from './api.js';
import { changeButton, heading, Table } from './parts.js';

/** @import { PushTask, RecordTask } from '../answers.ts' */
/** @import { Api, AppName } from './api.js' */
/** @import { Column, View } from './parts.js' */

/**
 * Lists the recordings of some applications.
 * @param {Api} api
 * @param {readonly AppName[]} applications
 * @returns {Promise<RecordTask[]>}
 */
export const listRecords = (api, applications) => listTasks(api, applications, 'records');

/**
 * Lists the pushes of some applications.
 * @param {Api} api
 * @param {readonly AppName[]} applications
 * @returns {Promise<PushTask[]>}
 */
export const listPushes = (api, applications) => listTasks(api, applications, 'pushes');

/**
 * @template T
 * @param {Api} api
 * @param {readonly AppName[]} applications
 * @param {'records' | 'pushes'} kind
 * @returns {Promise<T[]>}
 */
async function listTasks(api, applications, kind) {
  /** @type {Promise<T[]>[]} */
  const lists = applications.map((one) => listOf(api, one, kind));
  return (await Promise.all(lists)).flat();
}

/**
 * Lists none where the application has no publisher for them.
 * @template T
 * @param {Api} api
 * @param {AppName} application
 * @param {'records' | 'pushes'} kind
 * @returns {Promise<T[]>}
 */
async function listOf(api, application, kind) {
  try {
    return await api.get(`${appPath(application)}:${kind}`);
  } catch (error) {
    if (error instanceof ApiError && (error.status === 403 || error.status === 404)) return [];
    throw error;
  }
}

/** @param {number} count */
export const bytes = (count) => (count < 1e6 ? `${Math.round(count / 1000)} kB` : `${(count / 1e6).toFixed(1)} MB`);
/** @typedef {RecordTask | PushTask} Task */

/** @param {Task} task */
const taskKey = ({ vhost, app, id }) => JSON.stringify([vhost, app, id]);
/** @param {Task} task */
const streamOf = ({ vhost, app, stream }) => `${vhost} / ${app} / ${stream.name}`;

/**
 * A column with buttons that stop tasks, except those of the configuration.
 * @param {Api} api
 * @param {'stopRecord' | 'stopPush'} action
 * @returns {Column<Task>}
 */
const stopColumn = (api, action) => ({
  title: '',
  cell: ({ vhost, app, id, isConfig }) => {
    const stop = () => api.call('POST', `${appPath({ vhost, app })}:${action}`, { id });
    const button = changeButton(api, 'Stop', stop, { ask: `Stop ${id}?`, done: `${id} was stopped` });
    button.hidden ||= isConfig;
    return button;
  },
});

/**
 * Columns of both kinds of tasks.
 * @type {Column<Task>[]}
 */
const COMMON = [
  { title: 'Id', value: ({ id }) => id, sort: ({ id }) => id },
  { title: 'Stream', value: streamOf, sort: streamOf },
  {
    title: 'State',
    value: ({ state, reason }) => (reason ? `${state}: ${reason}` : state),
    sort: ({ state }) => state,
  },
];

/**
 * A column of a number that may not be known yet.
 * @template Row
 * @param {string} title
 * @param {(row: Row) => number | undefined} numberOf
 * @param {(value: number) => string} text
 * @returns {Column<Row>}
 */
const number = (title, numberOf, text) => ({
  title,
  numeric: true,
  value: (row) => text(numberOf(row) ?? 0),
  sort: (row) => numberOf(row) ?? 0,
});

/**
 * A table of recordings.
 * @param {Api} api
 * @returns {Table<RecordTask>}
 */
export function recordTable(api) {
  /** @param {RecordTask} task */
  const file = ({ outputFilePath, filePath }) => outputFilePath ?? filePath ?? '–';
  /** @type {Column<RecordTask>[]} */
  const columns = [
    ...COMMON,
    { title: 'File', width: 'wide', value: file, sort: file },
    number('Length', ({ totalRecordTime }) => totalRecordTime, age),
    number('Size', ({ totalRecordBytes }) => totalRecordBytes, bytes),
    stopColumn(api, 'stopRecord'),
  ];
  return new Table('Recordings', columns, 'Nothing is being recorded.');
}

/**
 * A table of pushes.
 * @param {Api} api
 * @returns {Table<PushTask>}
 */
export function pushTable(api) {
  /** @type {Column<PushTask>[]} */
  const columns = [
    ...COMMON,
    { title: 'To', width: 'wide', value: ({ url }) => url, sort: ({ url }) => url },
    number('Sent', ({ totalsentBytes }) => totalsentBytes, bytes),
    stopColumn(api, 'stopPush'),
  ];
  return new Table('Pushes', columns, 'Nothing is being pushed.');
}

/**
 * Shows tasks in a table.
 * @template {Task} T
 * @param {Table<T>} table
 * @param {readonly T[]} tasks
 */
export const showTasks = (table, tasks) => table.show(tasks, taskKey);

/**
 * The recordings and pushes of all applications.
 * @param {Api} api
 * @returns {View}
 */
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
      const [recorded, pushed] = await Promise.all([listRecords(api, applications), listPushes(api, applications)]);
      showTasks(records, recorded);
      showTasks(pushes, pushed);
    },
  };
}
