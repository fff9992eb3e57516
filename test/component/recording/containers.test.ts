import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import type { Packet } from '../../../src/core/packet.ts';
import { containerOf } from '../../../src/recording/container.ts';
import { codedPackets, ivfPackets, tracksOf, type Coded } from '../../support/media/coded-packets.ts';
import { launchBrowser } from '../../support/hls/browser.ts';
import { canonical, elementary, readFrames, sentFrames } from '../../support/media/frame-hashes.ts';
import { interleaved } from '../../support/media/packets.ts';
import { until } from '../../support/time/until.ts';

const folder = mkdtempSync(join(tmpdir(), 'kiln-containers-'));
test.after.always(() => rmSync(folder, { recursive: true }));

const SECONDS = 4;
/** Where the stream is when the recording begins. */
const LATER = 1000;

function later(packets: readonly Packet[]): Packet[] {
  return packets.map((packet) => {
    const by = (LATER * packet.track.timebase.den) / packet.track.timebase.num;
    return { ...packet, dts: packet.dts + by, pts: packet.pts + by };
  });
}

interface Written {
  readonly packets: readonly Packet[];
  readonly path: string;
}

/** A file of packets; `isCut`: as it is on the disk when the process is killed near the end. */
function write(name: string, packets: readonly Packet[], isCut = false): Written {
  const container = containerOf(name);
  const tracks = tracksOf(packets);
  for (const track of tracks) if (container.objection(track)) throw new Error(container.objection(track));
  const muxer = container.open(
    tracks,
    (fault) => {
      throw new Error(fault);
    },
    undefined,
  );
  let bytes = Buffer.concat(packets.flatMap((packet) => muxer.write(packet)));
  if (!isCut) {
    const { tail, patches } = muxer.end();
    bytes = Buffer.concat([bytes, ...tail]);
    for (const { at, data } of patches) data.copy(bytes, at);
  }
  const path = join(folder, name);
  writeFileSync(path, bytes);
  return { packets, path };
}

interface Probe {
  readonly format: { readonly duration: string; readonly start_time: string };
  readonly streams: readonly { readonly codec_name: string; readonly duration?: string; readonly start_time: string }[];
}

function probe(path: string): Probe {
  const text = execFileSync('ffprobe', ['-v', 'error', '-show_format', '-show_streams', '-of', 'json', path]);
  return JSON.parse(text.toString()) as Probe;
}

/** What ffmpeg says of a file, all of which it has decoded. @throws when it does not like it */
function decodes(path: string): string {
  return execFileSync('ffmpeg', ['-v', 'error', '-xerror', '-i', path, '-f', 'null', '-'], {
    stdio: 'pipe',
  }).toString();
}

function frames(path: string, kind: 'v' | 'a'): number {
  const text = execFileSync('ffprobe', [
    ...['-v', 'error', '-select_streams', `${kind}:0`, '-count_frames'],
    ...['-show_entries', 'stream=nb_read_frames', '-of', 'csv=p=0', path],
  ]);
  return Number(text.toString().trim().split('\n')[0]);
}

const MATRIX: readonly (readonly [extension: string, coded: Coded])[] = [
  ['mp4', { video: { codec: 'H264' }, audio: 'AAC', seconds: SECONDS }],
  ['mp4', { video: { codec: 'H265' }, audio: 'OPUS', seconds: SECONDS }],
  ['mp4', { video: { codec: 'H264' }, audio: 'MP3', seconds: SECONDS }],
  ['mp4', { audio: 'AAC', seconds: SECONDS }],
  ['ts', { video: { codec: 'H264' }, audio: 'AAC', seconds: SECONDS }],
  ['ts', { video: { codec: 'H265' }, audio: 'OPUS', seconds: SECONDS }],
  ['ts', { video: { codec: 'H264' }, audio: 'MP3', seconds: SECONDS }],
  ['webm', { audio: 'OPUS', seconds: SECONDS }],
];

function check(t: import('ava').ExecutionContext, { packets, path }: Written): void {
  decodes(path);
  const { streams, format } = probe(path);
  t.is(streams.length, tracksOf(packets).length);
  t.true(Math.abs(Number(format.duration) - SECONDS) < 0.2, `duration ${format.duration}`);
  const isTs = path.endsWith('.ts');
  for (const { type, codec } of tracksOf(packets)) {
    const read = readFrames(['-i', path], type);
    const sent = sentFrames(packets, type, isTs ? elementary : canonical);
    // ffmpeg takes the first zero of a start code of H.265 for the end of the frame before
    if (isTs && codec === 'H265') t.is(read.length, sent.length);
    else t.deepEqual(read, sent);
  }
  const starts = streams.map(({ start_time: start }) => Number(start));
  t.true(Math.max(...starts) - Math.min(...starts) < 0.15, `starts ${starts.join(' ')}`);
}

for (const [extension, coded] of MATRIX) {
  const name = [coded.video?.codec, coded.audio].filter(Boolean).join('-');
  test.serial(`${extension} of ${name} is decoded whole, with its duration`, (t) => {
    const written = write(`${name}.${extension}`, later(codedPackets(coded)));
    check(t, written);
  });
}

for (const codec of ['VP8', 'VP9', 'AV1'] as const) {
  test.serial(`webm of ${codec} and Opus is decoded whole, with its duration`, (t) => {
    const opus = codedPackets({ audio: 'OPUS', seconds: SECONDS }).map((packet) => ({
      ...packet,
      track: { ...packet.track, id: 1 },
    }));
    const sound = opus.map((packet) => ({ ...packet, track: (opus[0] as Packet).track }));
    check(t, write(`${codec}.webm`, later(interleaved(ivfPackets(codec, { seconds: SECONDS }), sound))));
  });
}

test.serial('mp4 of AV1 is decoded whole, with its duration', (t) => {
  check(t, write('av1.mp4', later(ivfPackets('AV1', { seconds: SECONDS }))));
});

for (const extension of ['mp4', 'ts', 'webm']) {
  test.serial(`a ${extension} recording without an end can be played`, (t) => {
    const packets =
      extension === 'webm'
        ? later(ivfPackets('VP8', { seconds: SECONDS }))
        : later(codedPackets({ video: { codec: 'H264' }, audio: 'AAC', seconds: SECONDS }));
    const { path } = write(`cut.${extension}`, packets, true);
    decodes(path);
    const read = frames(path, 'v');
    t.true(read >= (SECONDS - 1.1) * 25, `${read} frames`);
  });
}

test.serial('an mp4 has one movie with an index and no fragments for its reader', (t) => {
  const { path } = write('index.mp4', codedPackets({ video: { codec: 'H264' }, audio: 'AAC', seconds: SECONDS }));
  const bytes = readFileSync(path);
  const types: string[] = [];
  for (let at = 0; at < bytes.length;) {
    const size = bytes.readUInt32BE(at);
    types.push(bytes.toString('latin1', at + 4, at + 8));
    at += size === 1 ? Number(bytes.readBigUInt64BE(at + 8)) : size;
  }
  t.deepEqual(types, ['ftyp', 'mdat', 'moov']);
});

test.serial('Chromium plays an mp4 and a webm, and goes to the middle of them', async (t) => {
  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  const page = await browser.newPage();
  const files = {
    mp4: write('page.mp4', later(codedPackets({ video: { codec: 'H264' }, audio: 'AAC', seconds: SECONDS }))),
    webm: write('page.webm', later(ivfPackets('VP8', { seconds: SECONDS }))),
  };
  for (const [type, { path }] of Object.entries(files)) {
    const url = `data:video/${type};base64,${readFileSync(path).toString('base64')}`;
    await page.setContent(`<video muted src="${url}"></video>`);
    // a number that a page's script makes
    const reached = (what: string): Promise<number> => page.evaluate(what);
    await until(`${type} is loaded`, () =>
      reached('document.querySelector("video").readyState').then((state) => state > 2),
    );
    const duration = await reached('document.querySelector("video").duration');
    t.true(Math.abs(duration - SECONDS) < 0.2, `${type}: ${duration}`);
    await reached(
      `new Promise((resolve) => {
        const video = document.querySelector("video");
        video.onseeked = () => resolve(0);
        video.currentTime = ${SECONDS / 2};
      })`,
    );
    await reached('document.querySelector("video").play().then(() => 0)');
    await until(`${type} plays`, () =>
      reached('document.querySelector("video").currentTime').then((at) => at > SECONDS / 2),
    );
    const shown = await reached('document.querySelector("video").getVideoPlaybackQuality().totalVideoFrames');
    t.true(shown > 0);
  }
});

test.serial('reordered video that begins later than its audio is where it was while the file grew', async (t) => {
  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  const page = await browser.newPage();
  const both = codedPackets({ video: { codec: 'H264' }, audio: 'AAC', seconds: SECONDS });
  const isSecond = ({ track, key, dts }: Packet) => track.type === 'video' && key && dts > track.timebase.den / 2;
  const begin = both.findIndex(isSecond);
  const packets = both.filter(({ track }, index) => track.type === 'audio' || index >= begin);
  t.true(packets.some(({ dts, pts }) => pts > dts));
  const [growing, whole] = [true, false].map((isCut) => write(`late-${isCut}.mp4`, later(packets), isCut).path);
  const starts = (path: string) =>
    probe(path).streams.map(({ codec_name: codec, start_time: start }) => [codec, start]);
  t.deepEqual(starts(whole as string), starts(growing as string));
  const shown = async (path: string): Promise<number> => {
    await page.setContent('<video muted></video>');
    return await page.evaluate(`new Promise((resolve, reject) => {
      const video = document.querySelector("video");
      video.onerror = () => reject(new Error(video.error.message));
      video.requestVideoFrameCallback((_, { mediaTime }) => resolve(mediaTime));
      video.src = "data:video/mp4;base64,${readFileSync(path).toString('base64')}";
      video.play();
    })`);
  };
  const [before, after] = [await shown(growing as string), await shown(whole as string)];
  t.true(before > 0.9 && Math.abs(after - before) < 0.001, `first picture at ${before} s, then at ${after} s`);
});
