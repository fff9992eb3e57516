import { element } from '../common.js';
import { appPath, vhostPath } from './api.js';
import { Editor } from './editor.js';
import { changeButton, heading, Table } from './parts.js';

/** @import { Api } from './api.js' */
/** @import { View } from './parts.js' */

const NEW_VHOST = JSON.stringify([{ name: 'name', host: { names: ['live.example.com'] } }], null, 2);
const NEW_APP = JSON.stringify(
  [{ name: 'app', type: 'live', providers: { rtmp: {} }, publishers: { llhls: {} } }],
  null,
  2,
);

/**
 * A row of a virtual host has no `app`.
 * @typedef {{ vhost: string, app?: string }} Row
 */

/**
 * Virtual hosts and applications, and controls that change them: the API's own JSON, and its own errors.
 * @param {Api} api
 * @returns {View}
 */
export function applicationsView(api) {
  const editor = new Editor();
  /** @param {Row} row */
  const rowPath = ({ vhost, app }) => (app === undefined ? vhostPath(vhost) : appPath({ vhost, app }));
  /** @type {Table<Row>} */
  const table = new Table(
    'Virtual hosts and applications',
    [
      { title: 'Virtual host', value: ({ vhost }) => vhost, sort: ({ vhost, app }) => `${vhost}/${app ?? ''}` },
      { title: 'Application', value: ({ app }) => app ?? '', sort: ({ app }) => app ?? '' },
      {
        title: '',
        cell: (row) => {
          const path = rowPath(row);
          const name = row.app ?? row.vhost;
          // the configuration holds secrets, so read-only users do not see it
          const show = changeButton(api, 'Show', async () => editor.show(name, await api.get(path)), {
            className: 'plain',
          });
          const change = changeButton(api, 'Change', async () => {
            /** @type {Record<string, unknown>} */
            const config = await api.get(path);
            const { name: _name, dynamic: _dynamic, outputProfiles: _profiles, ...changeable } = config;
            editor.edit(
              `Change ${name}`,
              'It is restarted: publishers and viewers are disconnected. What you leave out stays as it is.',
              changeable,
              (text) => api.call('PATCH', path, text),
            );
          });
          const add = changeButton(api, 'New application', async () =>
            editor.edit(`New application of ${name}`, 'A list: several are possible.', NEW_APP, (text) =>
              api.call('POST', `${path}/apps`, text),
            ),
          );
          const remove = changeButton(api, 'Delete', () => api.call('DELETE', path), {
            ask: `Delete ${name} with all of its streams?`,
            done: `${name} was deleted`,
          });
          return element('span', { className: 'actions' }, show, ...(row.app === undefined ? [add] : [change]), remove);
        },
      },
    ],
    'There is no virtual host.',
  );
  const create = changeButton(api, 'New virtual host', async () =>
    editor.edit('New virtual host', 'A list: several are possible.', NEW_VHOST, (text) =>
      api.call('POST', '/v1/vhosts', text),
    ),
  );
  return {
    element: element('div', {}, heading('Applications', create), table.element, editor.element),
    refresh: async () => {
      const vhosts = await api.vhosts();
      const applications = await api.applications();
      const rows = vhosts.flatMap((vhost) => [{ vhost }, ...applications.filter((one) => one.vhost === vhost)]);
      table.show(rows, ({ vhost, app }) => JSON.stringify([vhost, app]));
    },
  };
}
