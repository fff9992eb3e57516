import { age, element, fetchStreams, media, playerPath, serverNow, watching } from './common.js';

const REFRESH_MS = 3000;
const HIDDEN_REFRESH_MS = 15_000;

const byId = (id) => document.getElementById(id);
const rows = new Map();

/** One row of the list; its parts are changed in place, so a focused link stays focused. */
function makeRow({ app, stream }) {
  const detail = element('div', { className: 'detail' });
  const viewers = element('b');
  const since = element('span');
  const link = element(
    'a',
    { href: playerPath(app, stream) },
    element('span', { className: 'dot', ariaHidden: 'true' }),
    element(
      'div',
      { className: 'what' },
      element('div', { className: 'name' }, element('small', {}, `${app} / `), stream),
      detail,
    ),
    element('div', { className: 'numbers' }, viewers, since),
  );
  return { item: element('li', {}, link), detail, viewers, since };
}

function show({ streams, more, restricted }) {
  const gone = new Set(rows.keys());
  for (const live of streams) {
    const key = playerPath(live.app, live.stream);
    gone.delete(key);
    let row = rows.get(key);
    if (row === undefined) {
      row = makeRow(live);
      rows.set(key, row);
      byId('streams').append(row.item);
    }
    row.detail.textContent = media(live);
    row.viewers.textContent = watching(live.viewers);
    row.since.textContent = `live for ${age(serverNow() - live.since)}`;
  }
  for (const key of gone) {
    rows.get(key).item.remove();
    rows.delete(key);
  }
  const count = streams.length;
  const noun = count === 1 ? 'stream' : 'streams';
  byId('count').textContent = more ? `the first ${count} ${noun}` : count > 0 ? `${count} ${noun}` : '';
  byId('empty').hidden = count > 0;
  if (restricted) say('Streams are not listed here', 'To watch one, use the link that its publisher gave you.');
  else say('Nothing is live right now', 'New streams appear here by themselves.');
}

function say(title, text) {
  if (byId('empty-title').textContent === title) return;
  byId('empty-title').textContent = title;
  byId('empty-text').textContent = text;
}

async function refresh() {
  try {
    show(await fetchStreams());
  } catch {
    byId('count').textContent = rows.size > 0 ? 'The server cannot be reached: the list may be old' : '';
    byId('empty').hidden = rows.size > 0;
    say('The server cannot be reached', 'This page tries again by itself.');
  }
}

let timer;
async function loop() {
  clearTimeout(timer);
  await refresh();
  clearTimeout(timer);
  timer = setTimeout(loop, document.hidden ? HIDDEN_REFRESH_MS : REFRESH_MS);
}

document.addEventListener('visibilitychange', () => {
  if (!document.hidden) void loop();
});
void loop();
