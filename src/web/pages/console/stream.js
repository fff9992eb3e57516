import { age, bits, element } from '../common.js';
import { Addresses } from './addresses.js';
import { ApiError, appPath, streamPath } from './api.js';
import { changeButton, Choice, facts, heading, Sparkline } from './parts.js';
import { StreamImage } from './stream-image.js';
import { pushForm } from './push.js';
import { listQuality, qualityTable } from './quality.js';
import { listPushes, listRecords, pushTable, recordTable, showTasks } from './tasks.js';
import { playlistsOf, playlistTable, tracksOf, trackTable } from './tracks.js';
import { srtText } from './srt.js';
import { connectionsText, Viewers } from './viewers.js';

/** @import { SrtConnections, Statistics, StreamInfo, StreamSummary } from '../answers.ts' */
/** @import { Api, StreamName } from './api.js' */
/** @import { View } from './parts.js' */

/** Milliseconds by which viewers notice that audio is late (ITU-R BT.1359). */
const NOTICED_MS = 125;
/** Codecs of thumbnails. */
const IMAGES = new Set(['JPEG', 'PNG', 'WEBP', 'AVIF']);

/**
 * One stream: its input, outputs, viewers and tasks, and controls that change them.
 * @param {Api} api
 * @param {StreamName} own
 * @returns {View}
 */
export function streamView(api, own) {
  const { vhost, app, stream } = own;
  const path = streamPath(own);
  const healthPlace = element('div');
  const image = new StreamImage(api, own);
  const outputs = new Choice('output', 'Record and push the output stream');
  const target = () => ({ name: outputs.chosen ?? stream });
  const rate = new Sparkline(80);
  const [tracks, playlists] = [trackTable(), playlistTable()];
  const viewers = new Viewers(api, own, path);
  const quality = qualityTable();
  const addresses = new Addresses(own);
  const [records, pushes] = [recordTable(api), pushTable(api)];
  const remove = changeButton(api, 'Delete', () => api.call('DELETE', path), {
    ask: `Disconnect the publisher of ${stream}? All viewers are disconnected, too.`,
    done: `${stream} was deleted`,
  });
  const refresh = async () => {
    /** @type {Promise<StreamInfo>} */
    const described = api.get(path);
    /** @type {Promise<Statistics>} */
    const statistics = api.get(`/v1/stats/current/${path.slice('/v1/'.length)}`);
    const [info, [glance], counted, nodes, recorded, pushed] = await Promise.all([
      described,
      api.streams(own),
      statistics,
      api.nodes(),
      listRecords(api, [own]),
      listPushes(api, [own]),
      viewers.refresh(),
    ]);
    const names = new Set(info.outputs.map(({ name }) => name));
    outputs.show([...names]);
    quality.show(await listQuality(api, own, names), ({ stream: name, rendition }) => `${name} ${rendition}`);
    const illustrated = info.outputs.find(({ tracks: all }) => all.some(({ video }) => IMAGES.has(video?.codec ?? '')));
    const hasVideo = info.input.tracks.some((track) => track.video !== undefined);
    image.update({ ...own, video: hasVideo || undefined, thumbnail: illustrated?.name });
    rate.add(counted.avgThroughputIn);
    healthPlace.replaceChildren(health(info, glance, counted, rate));
    tracks.show(tracksOf(info), ({ where, track }) => `${where} ${track.id}`);
    playlists.show(playlistsOf(info), ({ output, playlist: { name, fileName } }) =>
      JSON.stringify([output, name, fileName]),
    );
    addresses.show(nodes, glance?.node, [...names]);
    showTasks(
      records,
      recorded.filter((task) => names.has(task.stream.name)),
    );
    showTasks(
      pushes,
      pushed.filter((task) => names.has(task.stream.name)),
    );
  };
  const loading = element('p', { className: 'muted', textContent: 'Loading…' });
  const content = element(
    'div',
    { hidden: true },
    element('div', { className: 'glance' }, image.element, healthPlace),
    element('h2', {}, 'Tracks'),
    tracks.element,
    element('h2', {}, 'Playlists'),
    playlists.element,
    element('h2', {}, 'Viewers'),
    viewers.element,
    element('h2', {}, 'Quality as players report it'),
    quality.element,
    outputs.element,
    element('h2', {}, 'Recordings'),
    ...(api.isReadOnly ? [] : [recordForm(api, own, target)]),
    records.element,
    element('h2', {}, 'Pushes'),
    ...(api.isReadOnly ? [] : [pushForm(api, own, target)]),
    pushes.element,
    element('h2', {}, 'Addresses'),
    addresses.element,
  );
  return {
    element: element('div', {}, heading(`${vhost} / ${app} / ${stream}`, remove), loading, content),
    refresh: async () => {
      try {
        await refresh();
        loading.hidden = true;
        content.hidden = false;
      } catch (error) {
        if (!(error instanceof ApiError) || error.status !== 404) throw error;
        loading.hidden = true;
        throw new ApiError(404, `${stream} is not live`);
      }
    },
  };
}

/**
 * Figures that show first whether the encoder does what live streaming needs.
 * @param {StreamInfo} stream
 * @param {StreamSummary | undefined} glance
 * @param {Statistics} counted
 * @param {Sparkline} rate
 */
function health({ input }, glance, counted, rate) {
  const video = input.tracks.find((track) => track.video !== undefined)?.video;
  const { hasBframes = false, keyFrames = 'closed' } = video ?? {};
  const interval = glance?.video?.keyFrameInterval ?? 0;
  const { remoteAddress, remotePort, transport } = input.connection ?? {};
  /**
   * @param {string} text
   * @param {boolean} isWrong
   */
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
    ['B-frames', video && warning(hasBframes ? 'yes: WebRTC viewers may see stutter' : 'none', hasBframes)],
    ['Key frames', video && warning(KEY_FRAMES[keyFrames] ?? keyFrames, keyFrames !== 'closed')],
    ['Jitter', glance && `${glance.jitter.toFixed(1)} ms`],
    [
      'Audio against video',
      glance?.avOffset && warning(avOffsetText(glance.avOffset), Math.abs(glance.avOffset.latest ?? 0) > NOTICED_MS),
    ],
    ['Lost on the way in', glance && warning(packets(glance.lostPackets), glance.lostPackets > 0)],
    ...srtFacts('SRT in', glance?.srt?.in),
    ...srtFacts('SRT out', glance?.srt?.out),
    ['Dropped for slow viewers', glance && packets(glance.droppedPackets)],
    ['Changes of format', video && `${video.configChangeCount ?? 0}`],
    ['Connections', connectionsText(counted.connections)],
    ['At most', `${counted.maxTotalConnections} connections at a time`],
  ]);
}

/** @param {{ latest?: number, average: number, worst: number }} figures milliseconds */
function avOffsetText({ latest, average, worst }) {
  const past = `${lateText(average)} on average, ${lateText(worst)} at worst`;
  return latest === undefined ? past : `${lateText(latest)}, ${past}`;
}

/** @param {number} milliseconds */
function lateText(milliseconds) {
  return `${Math.abs(milliseconds).toFixed(0)} ms ${milliseconds < 0 ? 'early' : 'late'}`;
}

/**
 * Texts of `keyFrames` of a track.
 * @type {Readonly<Record<string, string>>}
 */
const KEY_FRAMES = {
  closed: 'IDR pictures',
  open: 'open GOPs: browsers that join may show nothing',
  none: 'none so far: nobody can begin',
};

/**
 * @param {string} title
 * @param {SrtConnections | undefined} srt
 * @returns {[string, HTMLElement][]}
 */
const srtFacts = (title, srt) =>
  srt === undefined ? [] : [[title, element('span', { className: srt.dropped > 0 ? 'wrong' : '' }, srtText(srt))]];

/** @param {number} count */
const packets = (count) => (count === 1 ? '1 packet' : `${count} packets`);

/**
 * @param {Api} api
 * @param {StreamName} stream
 * @param {() => { name: string }} target the output stream to record
 */
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
