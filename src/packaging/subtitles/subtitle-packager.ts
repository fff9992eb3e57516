import type { SubtitleTrack } from '../../core/track.ts';
import { Segment, type Part } from '../segment.ts';
import type { TrackPackager } from '../track-packager.ts';
import { Window, type WindowLimits } from '../window.ts';
import type { CueStore } from '../../core/cue-store.ts';
import { webVtt } from './web-vtt.ts';

/**
 * Makes parts and segments of one subtitle track, each as long as that of a leading media track, and under the same number. A cue is
 * in every part and segment in which it is shown.
 */
export class SubtitlePackager<Data = Buffer> {
  readonly track: SubtitleTrack;
  readonly leader: TrackPackager<Data>;
  readonly window: Window;
  readonly #cues: CueStore;
  readonly #whole = new WeakMap<Segment, Buffer>();
  readonly #clockOffset: number;
  readonly #undo: () => void;

  /** @param clockOffset ticks of 90 kHz by which timestamps of MPEG-2 are later than the media timeline */
  constructor(
    track: SubtitleTrack,
    leader: TrackPackager<Data>,
    limits: WindowLimits,
    cues: CueStore,
    clockOffset = 0,
  ) {
    this.track = track;
    this.leader = leader;
    this.window = new Window(limits);
    this.#cues = cues;
    this.#clockOffset = clockOffset;
    const onPart = (segment: Segment<Data>, part: Part<Data>): void => this.#addPart(segment, part);
    const onComplete = (segment: Segment<Data>): void => this.#complete(segment);
    leader.window.on('part', onPart).on('complete', onComplete);
    this.#undo = () => void leader.window.off('part', onPart).off('complete', onComplete);
  }

  /** Upper limit of a part's seconds (PART-TARGET). */
  get partTarget(): number {
    return this.leader.partTarget;
  }

  /** Body of a segment: its parts one after another would be no WebVTT. */
  body(segment: Segment): readonly Buffer[] {
    const whole = this.#whole.get(segment);
    return whole === undefined ? [] : [whole];
  }

  /** Stops following its leader. */
  close(): void {
    this.#undo();
  }

  #addPart(from: Segment<Data>, { index, duration }: Part<Data>): void {
    const segment = this.#open(from);
    const data = this.#text(segment.presentation + segment.duration, duration);
    this.window.add({ index, duration, independent: true, data, bytes: data.length }, this.leader.window.ending);
  }

  #complete(from: Segment<Data>): void {
    const segment = this.#open(from);
    if (segment.parts.length === 0) segment.duration = from.duration;
    else this.#whole.set(segment, this.#text(segment.presentation, segment.duration));
    this.window.complete();
    this.#cues.over((from.presentation + from.duration) * 1000);
  }

  /** The growing segment, as that of the leader. */
  #open({ msn, init, discontinuity, presentation, clock }: Segment<Data>): Segment {
    const { open } = this.window;
    if (open?.msn === msn) return open;
    const isFirst = open === undefined && this.window.kept.length === 0;
    const before = isFirst ? this.leader.window.discontinuitySequence : undefined;
    if (isFirst) this.window.lead(this.leader.window.leading);
    this.window.start(new Segment(msn, init, discontinuity, clock, presentation), before);
    return this.window.open as Segment;
  }

  /** @param from media time in seconds, as is the duration */
  #text(from: number, duration: number): Buffer {
    const shift = this.leader.shift * 1000;
    const begin = from * 1000;
    const cues = this.#cues.between(begin, begin + duration * 1000);
    return webVtt(
      begin + shift,
      cues.map((cue) => ({ ...cue, start: cue.start + shift, end: cue.end + shift })),
      this.#clockOffset,
    );
  }
}
