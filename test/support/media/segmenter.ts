import { pino } from 'pino';
import type { Packet } from '../../../src/core/packet.ts';
import type { MediaTrack, Track } from '../../../src/core/track.ts';
import { FaultLog } from '../../../src/log/log.ts';
import { FRAGMENTS, type PartForm } from '../../../src/packaging/part-form.ts';
import type { Segment } from '../../../src/packaging/segment.ts';
import { Segmenter, type SegmenterOptions } from '../../../src/packaging/segmenter.ts';
import type { TrackPackager } from '../../../src/packaging/track-packager.ts';

/** Every packet has come at its time, long ago. */
const MEDIA_CLOCK = { at: (media: number) => Date.UTC(2026, 0) + media * 1000 };

interface Started<Data> {
  readonly segmenter: Segmenter<Data>;
  packager(id: number): TrackPackager<Data>;
  /** What was logged. */
  faults(): string[];
  push(packets: readonly Packet[]): void;
  /** Complete segments and the growing one. */
  segments(id: number): readonly Segment<Data>[];
}

/** A segmenter of some tracks, and what comes out of it. */
export function startSegmenter(
  tracks: readonly Track[],
  options?: Partial<SegmenterOptions> & { readonly form?: undefined },
): Started<Buffer>;
export function startSegmenter<Data>(
  tracks: readonly Track[],
  options: Partial<SegmenterOptions> & { readonly form: PartForm<Data> },
): Started<Data>;
export function startSegmenter<Data>(
  tracks: readonly Track[],
  { form, ...options }: Partial<SegmenterOptions> & { readonly form?: PartForm<Data> | undefined } = {},
): Started<Data> {
  const lines: { msg: string }[] = [];
  const log = pino({ level: 'debug' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const faults = new FaultLog(log);
  const segmenter = new Segmenter(
    form ?? (FRAGMENTS as unknown as PartForm<Data>),
    { chunkDuration: 0.5, segmentDuration: 2, firstSegmentDuration: 2, segmentCount: 100, firstMsn: 0, ...options },
    log,
    faults,
  );
  segmenter.setTracks(tracks, MEDIA_CLOCK);
  const packager = (id: number) => {
    const found = segmenter.packagers.get(id);
    if (found === undefined) throw new Error(`track ${id} is not packaged`);
    return found;
  };
  return {
    segmenter,
    packager,
    faults: () => {
      faults.close();
      return lines.map(({ msg }) => msg);
    },
    push: (packets: readonly Packet[]) => packets.forEach((packet) => segmenter.push(packet)),
    segments: (id: number): readonly Segment<Data>[] => {
      const { listed, open } = packager(id).window;
      return open === undefined ? listed : [...listed, open];
    },
  };
}

/** Packets of several encoders in the order in which they come, each some seconds late. */
export function arriving(...sources: readonly (readonly [packets: readonly Packet[], late: number])[]): Packet[] {
  return sources
    .flatMap(([packets, late]) => packets.map((packet) => ({ packet, at: mediaTime(packet) + late })))
    .sort((one, other) => one.at - other.at)
    .map(({ packet }) => packet);
}

export function mediaTime({ dts, track }: Packet): number {
  return dts / (track as MediaTrack).timebase.den;
}
