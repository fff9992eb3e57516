import { pino } from 'pino';
import type { MediaTrack } from '../../../src/core/track.ts';
import type { Packet } from '../../../src/core/packet.ts';
import { FaultLog } from '../../../src/log/log.ts';
import { FRAGMENTS } from '../../../src/packaging/part-form.ts';
import { Segmenter } from '../../../src/packaging/segmenter.ts';
import { fileNames, pathOf } from '../../../src/publishers/hls/ll/names.ts';
import { toSavedState } from '../../../src/publishers/hls/local/saved-state.ts';
import { StreamFolder, type StreamNames } from '../../../src/publishers/hls/rewind/stream-folder.ts';
import { firstSampleEnd } from '../../../src/containers/fmp4/first-sample.ts';
import { aac } from '../media/aac.ts';
import { encode } from '../rtmp/flv-source.ts';

/** Blocks of the picture, each a bit of the number of the frame, the lowest first. */
export const FRAME_BITS = 16;
export const FRAMES_PER_SECOND = 2;
const WIDTH = 320;
const HEIGHT = 180;
const BLOCK = WIDTH / FRAME_BITS;
export const SEGMENT_SECONDS = 6;
const RUN = 'longpast';
/** Id of the audio track of RTMP publishers, which continue the stream. */
const RTMP_AUDIO = 2;
/** A whole number of its frames. */
const TONE_SECONDS = 3.2;

/**
 * Writes what a stream of LL-HLS leaves on the disk of a node that is stopped, in the time that it takes to encode it: video whose
 * frames show their numbers, and a tone.
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
  const [video, sound] = [numberedFrames(seconds), await tone(seconds)];
  const tracks = [video.track, sound.track];
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
        await files.write(name, body);
        const facts = { discontinuity, discontinuitySequence: 0, gap: false, breaks: '' };
        await files.note(list, {
          name,
          msn,
          duration,
          wallClock,
          ...facts,
          init: { name: map },
          ...(keyFrame !== undefined && { keyFrame }),
        });
      });
    });
  }
  for (const packet of inOrder(video.packets, sound.packets)) {
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
  return { track: tracks[0] as MediaTrack, packets };
}

/** A short tone again and again. */
async function tone(seconds: number): Promise<{ track: MediaTrack; packets: readonly Packet[] }> {
  const media = await aac(440, {}, TONE_SECONDS);
  const track = { ...media.track, id: RTMP_AUDIO };
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
  const at = ({ dts, track }: Packet): number => dts / (track as MediaTrack).timebase.den;
  return sources.flat().sort((one, other) => at(one) - at(other));
}
