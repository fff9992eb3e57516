import { age, bits, element } from './common.js';
import { ApiError, appPath, streamPath } from './console-api.js';
import { changeButton, copyButton, facts, heading, Sparkline, Table } from './console-parts.js';
import { StreamPicture } from './console-picture.js';
import { listTasks, pushTable, recordTable, showTasks } from './console-tasks.js';

/** Codecs of thumbnails. */
const IMAGES = new Set(['JPEG', 'PNG', 'WEBP', 'AVIF']);
/** Sessions of a page: each costs a call at every look. */
const PAGE = 20;

/** One stream: what comes in, what goes out, who watches, and what can be done with it. */
export function streamView(api, [vhost, app, stream]) {
  const own = { vhost, app, stream };
  const path = streamPath(own);
  const place = { health: element('div'), urls: element('div'), outputs: element('div') };
  const picture = new StreamPicture(api, own);
  const outputs = new OutputChoice();
  const target = () => ({ name: outputs.chosen ?? stream });
  const pages = new Pages(() => void refresh().catch(() => undefined));
  const rate = new Sparkline(80);
  const tracks = trackTable();
  const sessions = sessionTable(api, path);
  const [records, pushes] = [recordTable(api), pushTable(api)];
  const remove = changeButton(api, 'Delete', () => api.call('DELETE', path), {
    ask: `Disconnect the publisher of ${stream}? All viewers are disconnected, too.`,
    done: `${stream} was deleted`,
  });
  const refresh = async () => {
    const [info, [glance], counted, ids, nodes, recorded, pushed] = await Promise.all([
      api.get(path),
      api.get(`/v1/cluster/streams?${new URLSearchParams(own)}`),
      api.get(`/v1/stats/current/${path.slice('/v1/'.length)}`),
      api.get(`${path}/sessions`),
      api.get('/v1/cluster/nodes'),
      listTasks(api, [own], 'records'),
      listTasks(api, [own], 'pushes'),
    ]);
    const names = new Set(info.outputs.map(({ name }) => name));
    outputs.show([...names]);
    const pictured = info.outputs.find(({ tracks: all }) => all.some(({ video }) => IMAGES.has(video?.codec)));
    const hasVideo = info.input.tracks.some((track) => track.video !== undefined);
    picture.update({ ...own, video: hasVideo || undefined, thumbnail: pictured?.name });
    rate.add(counted.avgThroughputIn);
    place.health.replaceChildren(health(info, glance, counted, rate));
    tracks.show(tracksOf(info), ({ where, track }) => `${where} ${track.id}`);
    place.urls.replaceChildren(urls(nodes, own, info.outputs));
    const shown = await Promise.all(pages.of(ids).map((id) => session(api, path, id)));
    sessions.show(shown.filter(Boolean), ({ id }) => id);
    showTasks(
      records,
      recorded.filter((task) => names.has(task.stream.name)),
    );
    showTasks(
      pushes,
      pushed.filter((task) => names.has(task.stream.name)),
    );
  };
  return {
    element: element(
      'div',
      {},
      heading(`${vhost} / ${app} / ${stream}`, remove),
      element('div', { className: 'glance' }, picture.element, place.health),
      element('h2', {}, 'Tracks'),
      tracks.element,
      element('h2', {}, 'Viewers'),
      sessions.element,
      pages.element,
      outputs.element,
      element('h2', {}, 'Recordings'),
      ...(api.isReadOnly ? [] : [recordForm(api, own, target)]),
      records.element,
      element('h2', {}, 'Pushes'),
      ...(api.isReadOnly ? [] : [pushForm(api, own, target)]),
      pushes.element,
      element('h2', {}, 'Addresses'),
      place.urls,
    ),
    refresh: async () => {
      try {
        await refresh();
      } catch (error) {
        if (error instanceof ApiError && error.status === 404)
          throw new ApiError(404, `${stream} is not live. What is shown is how it was last.`);
        throw error;
      }
    },
  };
}

/** Which of several output streams is recorded and pushed. */
class OutputChoice {
  #select = element('select', { id: 'output' });
  element = element(
    'p',
    { className: 'inline', hidden: true },
    element('label', { htmlFor: 'output' }, 'Record and push the output stream'),
    this.#select,
  );

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

/** Pages of a list that is too long for one look. */
class Pages {
  #at = 0;
  #count = 0;
  #text = element('span', { className: 'muted' });
  #back = element('button', { type: 'button', textContent: 'Previous' });
  #on = element('button', { type: 'button', textContent: 'Next' });
  element = element('p', { className: 'inline', hidden: true }, this.#back, this.#on, this.#text);

  /** @param turned called when another page is to be shown */
  constructor(turned) {
    const turn = (pages) => {
      this.#at += pages;
      turned();
    };
    this.#back.addEventListener('click', () => turn(-1));
    this.#on.addEventListener('click', () => turn(1));
  }

  /** The items of the page that is shown. */
  of(items) {
    this.#count = Math.max(1, Math.ceil(items.length / PAGE));
    this.#at = Math.min(Math.max(this.#at, 0), this.#count - 1);
    const from = this.#at * PAGE;
    const page = items.slice(from, from + PAGE);
    this.element.hidden = this.#count === 1;
    this.#back.disabled = this.#at === 0;
    this.#on.disabled = this.#at === this.#count - 1;
    this.#text.textContent = `${from + 1} to ${from + page.length} of ${items.length}`;
    return page;
  }
}

/** What an operator looks at first: whether the encoder does what live streaming needs. */
function health({ input }, glance, counted, rate) {
  const video = input.tracks.find((track) => track.video !== undefined)?.video;
  const interval = video && video.framerateAvg > 0 ? video.keyFrameIntervalLatest / video.framerateAvg : 0;
  const { remoteAddress, remotePort, transport } = input.connection ?? {};
  const warning = (text, isWrong) => element('span', { className: isWrong ? 'wrong' : '' }, text);
  return facts([
    [
      'Source',
      `${input.sourceType}${remoteAddress === undefined ? '' : `, ${remoteAddress}:${remotePort} (${transport})`}`,
    ],
    ['Live for', age(Date.now() - Date.parse(input.createdTime))],
    ['Bitrate in', element('span', { className: 'rate' }, bits(counted.avgThroughputIn), rate.element)],
    ['Bitrate out', bits(counted.avgThroughputOut)],
    ['Frame rate', video && `${(video.framerateLatest ?? 0).toFixed(2)} fps`],
    ['Key frame interval', video && warning(interval > 0 ? `${interval.toFixed(2)} s` : 'unknown', interval > 4)],
    ['B-frames', video && warning(video.hasBframes ? 'yes: WebRTC viewers may see stutter' : 'none', video.hasBframes)],
    ['Jitter', glance && `${glance.jitter.toFixed(1)} ms`],
    ['Lost on the way in', glance && warning(packets(glance.lostPackets), glance.lostPackets > 0)],
    ['Dropped for slow viewers', glance && packets(glance.droppedPackets)],
    ['Changes of format', video && `${video.configChangeCount ?? 0}`],
    [
      'Connections',
      `${counted.totalConnections}, at most ${counted.maxTotalConnections}, recordings and pushes included`,
    ],
  ]);
}

const packets = (count) => (count === 1 ? '1 packet' : `${count} packets`);

function tracksOf({ input, outputs }) {
  const of = (where, tracks) => tracks.map((track) => ({ where, track }));
  return [...of('input', input.tracks), ...outputs.flatMap(({ name, tracks }) => of(name, tracks))];
}

function trackTable() {
  const media = ({ track }) => track.video ?? track.audio;
  const format = ({ track: { video, audio, data } }) => {
    if (video !== undefined) return `${video.width}×${video.height} ${Number(video.framerate).toFixed(2)} fps`;
    if (audio !== undefined) return `${audio.samplerate} Hz, ${audio.channel} ch`;
    return data?.codec ?? '';
  };
  return new Table(
    'Tracks',
    [
      { title: 'Stream', value: ({ where }) => where, sort: ({ where }) => (where === 'input' ? '' : where) },
      { title: 'Track', value: ({ track }) => `${track.id} ${track.name}`, sort: ({ track }) => track.id },
      {
        title: 'Codec',
        value: (row) => media(row)?.codec ?? row.track.data?.codec ?? '',
        sort: (row) => media(row)?.codec ?? '',
      },
      { title: 'Format', width: 'short', value: format, sort: format },
      {
        title: 'Bitrate',
        numeric: true,
        value: (row) => bits(Number(media(row)?.bitrateLatest ?? 0)),
        sort: (row) => Number(media(row)?.bitrateLatest ?? 0),
      },
      {
        title: 'Encoder',
        value: (row) => (media(row) === undefined ? '' : media(row).bypass ? 'bypassed' : encoder(media(row))),
        sort: (row) => String(media(row)?.bypass),
      },
    ],
    'It has no track yet.',
  );
}

/** Those of an input stream have none. */
function encoder({ codecModule = 'none', codecStatus = '' }) {
  return codecModule === 'none' ? '–' : `${codecModule} ${codecStatus}`;
}

function sessionTable(api, path) {
  return new Table(
    'Viewers',
    [
      { title: 'Session', value: ({ id }) => id, sort: ({ id }) => id },
      {
        title: 'Since',
        value: ({ createdTime }) => age(Date.now() - Date.parse(createdTime)),
        sort: ({ createdTime }) => createdTime,
        numeric: true,
      },
      {
        title: 'Bitrate',
        numeric: true,
        value: ({ avgThroughputOut }) => bits(avgThroughputOut),
        sort: (row) => row.avgThroughputOut,
      },
      {
        title: 'Sent',
        numeric: true,
        value: (row) => `${(row.totalBytesOut / 1e6).toFixed(1)} MB`,
        sort: (row) => row.totalBytesOut,
      },
      {
        title: '',
        cell: ({ id }) =>
          changeButton(api, 'Disconnect', () => api.call('DELETE', `${path}/sessions/${encodeURIComponent(id)}`), {
            done: 'The viewer was disconnected',
          }),
      },
    ],
    'Nobody watches.',
  );
}

/** undefined for one that has just gone. */
async function session(api, path, id) {
  try {
    const statistics = await api.get(
      `/v1/stats/current/${path.slice('/v1/'.length)}/sessions/${encodeURIComponent(id)}`,
    );
    return { id, ...statistics };
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}

function recordForm(api, { vhost, app, stream }, target) {
  return changeButton(
    api,
    'Start recording',
    () =>
      api.call('POST', `${appPath({ vhost, app })}:startRecord`, {
        id: `${stream}-${Date.now()}`,
        stream: target(),
      }),
    { done: 'The recording starts', className: 'start' },
  );
}

function pushForm(api, { vhost, app, stream }, target) {
  const url = element('input', { id: 'push-url', placeholder: 'rtmp://host/app', required: true, autocomplete: 'off' });
  const key = element('input', { id: 'push-key', placeholder: 'stream key', autocomplete: 'off' });
  const start = changeButton(
    api,
    'Start push',
    () =>
      api.call('POST', `${appPath({ vhost, app })}:startPush`, {
        id: `${stream}-${Date.now()}`,
        stream: target(),
        protocol: url.value.split(':')[0],
        url: url.value,
        ...(key.value !== '' && { streamKey: key.value }),
      }),
    { done: 'The push starts' },
  );
  const label = (text, field) => element('label', { htmlFor: field.id, className: 'unseen' }, text);
  return element('div', { className: 'inline' }, label('URL', url), url, label('Stream key', key), key, start);
}

/** Where the stream is played and published, by what nodes say of their addresses. */
function urls(nodes, { app, stream }, outputs) {
  const [{ addresses = {} } = {}] = nodes.filter(({ state }) => state === 'ready');
  const name = outputs[0]?.name ?? stream;
  const at = (base, of) => `${base}/${encodeURIComponent(app)}/${encodeURIComponent(of)}`;
  const rows = [
    ...(addresses.llhls ?? []).map((base) => ['Page', at(base, name)]),
    ...(addresses.llhls ?? []).map((base) => ['LL-HLS', `${at(base, name)}/llhls.m3u8`]),
    ...(addresses.webrtc ?? []).map((base) => ['WHEP', `${at(base.replace(/^ws/, 'http'), name)}?direction=whep`]),
    ...(addresses.rtmp ?? []).map((base) => ['RTMP (publish)', at(base, stream)]),
    ...(addresses.whip ?? []).map((base) => ['WHIP (publish)', `${at(base, stream)}?direction=whip`]),
  ];
  return facts(
    rows.map(([what, url]) => [
      what,
      element('span', { className: 'copied' }, element('code', {}, url), copyButton(url)),
    ]),
  );
}
