import { firstSampleEnd } from '../../../src/containers/fmp4/first-sample.ts';
import { toSavedState } from '../../../src/publishers/hls/local/saved-state.ts';
import { fileNames, pathOf } from '../../../src/publishers/hls/ll/names.ts';
import { Segmenter } from '../../../src/packaging/segmenter.ts';
import { FRAGMENTS } from '../../../src/packaging/part-form.ts';
import { FaultLog } from '../../../src/log/log.ts';
import { pino } from 'pino';
import type { HlsPublisherConfig } from '../../../src/config/model.ts';
import type { Application } from '../../../src/core/application.ts';
import type { Packet } from '../../../src/core/packet.ts';
import { Registry } from '../../../src/core/registry.ts';
import type { MediaTrack } from '../../../src/core/track.ts';
import { KeyCounts, PastCounts } from '../../../src/publishers/hls/answer/counts.ts';
import { MediaCache } from '../../../src/publishers/hls/answer/media-cache.ts';
import { LLHLS } from '../../../src/publishers/hls/ll/index.ts';
import { PackagedStream } from '../../../src/publishers/hls/local/packaged-stream.ts';
import { StreamFolder, type StreamNames } from '../../../src/publishers/hls/rewind/stream-folder.ts';
import { HLS } from '../../../src/publishers/hls/ts/index.ts';
import { createVhost } from '../api/api.ts';
import { aac } from '../media/aac.ts';
import { encode } from '../rtmp/flv-source.ts';
import { until } from '../time/until.ts';

/** Blocks of the picture, each a bit of the number of the frame, the lowest first. */
export const FRAME_BITS = 16;
export const FRAMES_PER_SECOND = 2;
const WIDTH = 320;
const HEIGHT = 180;
const BLOCK = WIDTH / FRAME_BITS;
export const SEGMENT_SECONDS = 6;
/** Segments of the playlist at the live edge. */
const WINDOW = 3;
const RUN = 'longpast';
/** Segments that wait for the disk. */
const UNWRITTEN = 100;
/** Tracks that the default output profile makes of those of RTMP publishers, which continue the stream. */
const VIDEO = { id: 0, name: 'bypass_video' };
const AUDIO = { id: 2, name: 'aac' };
/** A whole number of its frames. */
const TONE_SECONDS = 3.2;

/** Video whose frames show their numbers, with a key frame every two seconds, and a tone. */
interface NumberedMedia {
  readonly tracks: readonly MediaTrack[];
  /** In the order in which a publisher sends them. */
  readonly packets: readonly Packet[];
}

export async function numberedMedia(seconds: number): Promise<NumberedMedia> {
  const [video, sound] = [numberedFrames(seconds), await tone(seconds)];
  return { tracks: [video.track, sound.track], packets: inOrder(video.packets, sound.packets) };
}

/** Seconds of a packet. */
const mediaTime = ({ dts, track }: Packet): number => dts / (track as MediaTrack).timebase.den;

/**
 * Writes what a stream leaves on the disk of a node that is stopped, in the time that it takes to package it.
 * @param root TempStoragePath
 * @param begun time of the first frame, in milliseconds since the epoch
 */
export async function writePackagedPast(
  root: string,
  names: StreamNames & { readonly kind: 'llhls' | 'hlsv3' },
  { tracks, packets }: NumberedMedia,
  begun: number,
): Promise<void> {
  const form = names.kind === 'llhls' ? LLHLS : HLS;
  const durations = { segmentDuration: SEGMENT_SECONDS, segmentCount: WINDOW, ...(!form.inTs && { chunkDuration: 1 }) };
  const dvr = { enable: true, tempStoragePath: root, maxDuration: 1e6, minFreeSpace: '0' };
  const publishers = { [form.module]: { ...durations, dvr } };
  const registry = new Registry();
  createVhost(registry, {
    name: names.vhost,
    host: { names: ['*'] },
    applications: [{ name: names.app, type: 'live', publishers }],
  });
  const application = registry.vhost(names.vhost).application(names.app) as Application;
  const input = application.publish(
    names.stream,
    { type: 'Rtmp', kind: 'rtmp' },
    { replace: false, maxConnections: 0 },
  );
  input.setTracks(tracks);
  const output = application.addOutput(input, names.stream);
  output.setTracks(tracks);
  form.addDefaultPlaylist(output);
  const counts = new PastCounts();
  const stream = new PackagedStream({
    ...{ form, output, application, keyCounts: new KeyCounts() },
    config: form.config(application) as HlsPublisherConfig,
    past: {
      ...{ root, counts },
      folder: new StreamFolder(root, names),
      cache: new MediaCache(1),
      elsewhere: async () => [],
    },
    log: pino({ level: 'silent' }),
  });
  const lists = form.inTs ? 1 : tracks.length;
  for (const packet of packets) {
    const media = mediaTime(packet);
    input.arrival.note(packet, begun + media * 1000);
    output.write(packet);
    // no more waits for the disk than it takes
    const due = lists * (Math.floor(media / SEGMENT_SECONDS) - WINDOW);
    if (counts.storedSegments < due - UNWRITTEN) await until('segments', () => counts.storedSegments >= due);
  }
  stream.interrupt();
  stream.close();
  await stream.written();
  registry.close('all is written');
}

/**
 * Writes what a stream of LL-HLS leaves on the disk of a node that is stopped, in the time that it takes to encode it: `numberedMedia` in
 * segments of one length, from number 0 on.
 * @param root TempStoragePath
 * @param begun time of the first frame, in milliseconds since the epoch
 */
export async function writeLongPast(root: string, names: StreamNames, seconds: number, begun: number): Promise<void> {
  const folder = new StreamFolder(root, names);
  const files = folder.run(RUN);
  const log = pino({ level: 'silent' });
  const faults = new FaultLog(log);
  const durations = { chunkDuration: 1, segmentDuration: SEGMENT_SECONDS, firstSegmentDuration: SEGMENT_SECONDS };
  const segmenter = new Segmenter(
    FRAGMENTS,
    { ...durations, segmentCount: 3, firstMsn: 0, past: undefined },
    log,
    faults,
  );
  const { tracks, packets } = await numberedMedia(seconds);
  segmenter.setTracks(tracks, { at: (media) => begun + media * 1000 });
  let written = Promise.resolve();
  for (const track of tracks) {
    const { window } = segmenter.packagers.get(track.id) ?? {};
    const of = fileNames({ trackId: track.id, type: track.type, streamKey: RUN, keepsKey: false, query: '' });
    let init: string | undefined;
    window?.on('complete', (segment) => {
      const { msn, duration, wallClock, discontinuity, parts } = segment;
      const [first] = parts;
      const keyFrame = track.type === 'video' && first !== undefined ? firstSampleEnd(first.data) : undefined;
      const known = init;
      const map = (init = pathOf(of.init(segment.init)));
      const [name, list] = [pathOf(of.segment(msn)), pathOf(of.chunklist())];
      const body = parts.map(({ data }) => data);
      written = written.then(async () => {
        if (map !== known) await files.write(map, [segment.init.data]);
        const facts = { discontinuity, discontinuitySequence: 0, gap: false, breaks: '' };
        const stored = {
          ...{ list, name },
          msn,
          duration,
          wallClock,
          ...facts,
          init: { name: map },
          ...(keyFrame !== undefined && { keyFrame }),
        };
        await files.store([{ segment: stored, body }]);
      });
    });
  }
  for (const packet of packets) {
    segmenter.push(packet);
    await written;
  }
  segmenter.finish();
  await written;
  faults.close();
  const saved = { complete: true, at: Date.now(), segmentDuration: SEGMENT_SECONDS };
  await folder.writeState(toSavedState(RUN, segmenter.progress, saved, []) ?? {});
}

function numberedFrames(seconds: number): { track: MediaTrack; packets: readonly Packet[] } {
  const blocks = Array.from({ length: FRAME_BITS }, (_, bit) => {
    const isSet = `enable='gte(mod(n/${2 ** bit}\\,2)\\,1)'`;
    return `drawbox=x=${bit * BLOCK}:y=0:w=${BLOCK}:h=ih:c=white:t=fill:${isSet}`;
  });
  const source = `color=black:s=${WIDTH}x${HEIGHT}:r=${FRAMES_PER_SECOND}:d=${seconds}`;
  const codec = ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-bf', '0', '-sc_threshold', '0'];
  const groups = ['-g', `${2 * FRAMES_PER_SECOND}`, '-keyint_min', `${2 * FRAMES_PER_SECOND}`];
  const { tracks, packets } = encode(['-f', 'lavfi', '-i', source, '-vf', blocks.join(), ...codec, ...groups]);
  const track = { ...(tracks[0] as MediaTrack), ...VIDEO };
  return { track, packets: packets.map((packet) => ({ ...packet, track })) };
}

/** A short tone again and again. */
async function tone(seconds: number): Promise<{ track: MediaTrack; packets: readonly Packet[] }> {
  const media = await aac(440, {}, TONE_SECONDS);
  const track = { ...media.track, ...AUDIO };
  const packets: Packet[] = [];
  const end = seconds * track.timebase.den;
  for (let dts = 0; dts < end;) {
    for (const { duration, data } of media.frames) {
      packets.push({ track, dts, pts: dts, duration, key: true, data });
      dts += duration;
    }
  }
  return { track, packets };
}

function inOrder(...sources: readonly (readonly Packet[])[]): Packet[] {
  return sources.flat().sort((one, other) => mediaTime(one) - mediaTime(other));
}
