import type { HlsPublisherConfig } from '../../../config/model.ts';
import { OFFSET } from '../../../containers/mpegts/muxer.ts';
import type { Packet } from '../../../core/packet.ts';
import type { SubtitleTrack } from '../../../core/track.ts';
import type { Playlist } from '../../../core/playlist.ts';
import type { OutputStream } from '../../../core/output-stream.ts';
import { kilnError } from '../../../errors.ts';
import type { Breaks } from '../../../packaging/breaks.ts';
import { RUNS, type FrameRun } from '../../../packaging/frame-run.ts';
import type { PlaylistPosition } from '../../../packaging/playlist-position.ts';
import { Segmenter } from '../../../packaging/segmenter.ts';
import type { TrackPackager } from '../../../packaging/track-packager.ts';
import type { Segment } from '../../../packaging/segment.ts';
import type { TsSegment } from '../../../packaging/ts-segment.ts';
import { SubtitlePackagers } from '../../../packaging/subtitles/subtitle-packagers.ts';
import { CaptionServices } from '../../../core/captions/caption-services.ts';
import { Followers, type Follower } from '../answer/segment-followers.ts';
import { firstMsn } from '../package/first-msn.ts';
import type { PackageOptions } from '../package/hls-form.ts';
import { defaultQuery, nameHash } from '../answer/names.ts';
import { nextEdition, type Package, type Resource } from '../package/package.ts';
import { Queue, type Awaiting } from '../blocking-reload/queue.ts';
import { Readiness } from '../package/readiness.ts';
import { namedTracks, variants } from '../master/variants.ts';
import { buildMaster } from './master.ts';
import { isSubtitleName, readName } from './names.ts';
import { SubtitleList } from './subtitle-list.ts';
import { Variant, type VariantContext } from './variant.ts';

/** A stream in MPEG-TS: each rendition of playlists with EnableTsPackaging is a variant. */
export class TsPackage implements Package, VariantContext {
  readonly queue = new Queue(this);
  readonly #followers = new Followers();
  readonly continues: boolean;
  readonly rewind: PackageOptions['rewind'];
  readonly segmentCount: number;
  readonly query: string;
  readonly #options: PackageOptions;
  readonly #segmenter: Segmenter<FrameRun>;
  readonly readiness = new Readiness(
    (playlist) => this.#variantsOf(playlist, this.#variants),
    () => this.#options.onStarted(),
  );
  #playlists: readonly Playlist[] = [];
  /** By id. */
  #variants = new Map<string, Variant>();
  readonly #subtitlePackagers: SubtitlePackagers<FrameRun>;
  /** By track id. */
  readonly #subtitles = new Map<number, SubtitleList>();
  #edition = nextEdition();
  #interrupted = false;
  readonly #captions = new CaptionServices();

  constructor(config: HlsPublisherConfig, options: PackageOptions) {
    const { next, log, faults } = options;
    const { segmentDuration, segmentCount } = config;
    this.#options = options;
    this.continues = next !== undefined;
    this.rewind = options.rewind;
    this.segmentCount = segmentCount;
    this.query = defaultQuery(config);
    // players keep the latency that they start with: a short first segment would leave them too little buffer for a long one
    const durations = { chunkDuration: segmentDuration, segmentDuration, firstSegmentDuration: segmentDuration };
    this.#segmenter = new Segmenter(
      RUNS,
      {
        ...durations,
        segmentCount,
        firstMsn: firstMsn(config, next),
        past: next?.past,
        breaks: options.breaks,
      },
      log,
      faults,
    );
    this.#subtitlePackagers = new SubtitlePackagers(this.#segmenter.windowLimits, OFFSET);
  }

  get edition(): number {
    return this.#edition;
  }

  get faults(): PackageOptions['faults'] {
    return this.#options.faults;
  }

  get interrupted(): boolean {
    return this.#interrupted;
  }

  get concluded(): boolean {
    return this.#segmenter.concluded;
  }

  get targetDuration(): number {
    return this.#segmenter.targetDuration;
  }

  get breaks(): Breaks {
    return this.#segmenter.breaks;
  }

  get waiting(): Awaiting['waiting'] {
    return [this.readiness, ...this.#variants.values(), ...this.#subtitles.values()];
  }

  get progress(): PlaylistPosition {
    return this.#segmenter.progress;
  }

  get unannounced(): number {
    return this.#segmenter.unannounced;
  }

  update(output: OutputStream): void {
    this.#interrupted = false;
    this.#playlists = output.playlists.filter(({ options }) => options.enableTsPackaging);
    if (this.concluded) return;
    for (const packager of this.#segmenter.setTracks(
      namedTracks(output.tracks, this.#playlists),
      output.input.arrival,
    )) {
      packager.window.on('complete', () => this.#advance(packager));
    }
    this.#edition = nextEdition();
    const before = this.#variants;
    this.#variants = new Map();
    for (const playlist of this.#playlists)
      for (const variant of this.#variantsOf(playlist, before)) this.#variants.set(variant.id, variant);
    for (const variant of before.values()) {
      // a variant that players have loaded stays as long as its tracks do
      if (!this.#variants.has(variant.id) && variant.started && this.#isMade(variant))
        this.#variants.set(variant.id, variant);
      if (this.#variants.get(variant.id) !== variant) variant.waiters.close();
    }
    for (const variant of this.#variants.values()) variant.changed();
    this.#updateSubtitles(output.tracks.filter((track) => track.type === 'subtitle'));
    if ([...this.#variants.values()].some((variant) => before.get(variant.id) !== variant)) this.readiness.expect();
    this.readiness.check();
  }

  push(packet: Packet): void {
    if (packet.track.type === 'subtitle') return this.#addCue(packet);
    if (packet.track.type === 'video') this.#captions.push(packet);
    this.#segmenter.push(packet);
  }

  interrupt(): void {
    this.#interrupted = true;
    this.#segmenter.finish();
    this.#followers.end();
    this.queue.interrupt();
  }

  conclude(urgent: boolean): void {
    this.#segmenter.conclude(urgent, () => {
      this.#edition = nextEdition();
      for (const list of [...this.#variants.values(), ...this.#subtitles.values()]) list.conclude();
      this.#followers.end();
      this.#options.onProgress();
    });
  }

  follow(follower: Follower): () => void {
    const unfollow = this.#followers.add<TsSegment | Segment>(follower, [
      ...this.#variants.values(),
      ...this.#subtitles.values(),
    ]);
    if (this.concluded || this.#interrupted) this.#followers.end();
    return unfollow;
  }

  completed(variant: Variant, segment: TsSegment): void {
    if (this.#followers.size > 0) this.#followers.segment(variant.followed(segment));
  }

  close(): void {
    this.#segmenter.finish();
    this.#followers.end();
  }

  master(playlist: Playlist, output: OutputStream, uri: (name: string) => string): string | undefined {
    if (!playlist.options.enableTsPackaging) throw kilnError('fileNotFound');
    // a playlist may be added to the stream without a change of tracks
    if (!this.#interrupted && !this.#playlists.includes(playlist)) this.update(output);
    const state = this.readiness.stateOf(playlist);
    if (state === 'empty') throw kilnError('fileNotFound');
    if (state === 'starting') return undefined;
    return buildMaster(
      this.#variantsOf(playlist, this.#variants).filter(({ started }) => started),
      {
        output,
        targetDuration: this.targetDuration,
        captions: { services: this.#captions, trackOf: (channel) => output.input.captionTrack(channel) },
        subtitles: this.#subtitlesOf(playlist),
        uri,
      },
    );
  }

  file(name: string): Resource | undefined {
    const { variant: id, msn } = readName(name) ?? {};
    const list = this.#variants.get(id ?? '') ?? [...this.#subtitles.values()].find((one) => one.id === id);
    if (list === undefined) return undefined;
    if (msn !== undefined && list instanceof SubtitleList !== isSubtitleName(name)) return undefined;
    return msn === undefined ? { kind: 'list', rendition: list } : list.segment(msn);
  }

  /** Variants of a playlist, in its order: known ones, and new ones. */
  #variantsOf(playlist: Playlist, known: ReadonlyMap<string, Variant>): Variant[] {
    const packagers = [...this.#segmenter.packagers.values()];
    return variants(playlist, packagers).map(({ video, audios: [audio] }) => {
      const own = [video, audio].filter((one) => one !== undefined);
      const id = nameHash([this.#options.streamKey, ...own.map((one) => nameOf(one, packagers))].join('_'));
      const present = known.get(id);
      return present !== undefined && isMadeOf(present, own) ? present : new Variant(id, own, this);
    });
  }

  #subtitlesOf({ hidesSubtitles }: Playlist): SubtitleList[] {
    return hidesSubtitles ? [] : [...this.#subtitles.values()].filter(({ started }) => started);
  }

  #addCue(packet: Packet): void {
    if (!this.#subtitlePackagers.push(packet))
      this.faults.count('HLS: dropped subtitles, because too many are shown at a time');
  }

  #updateSubtitles(tracks: readonly SubtitleTrack[]): void {
    const { added, dropped } = this.#subtitlePackagers.set(tracks, [...this.#segmenter.packagers.values()]);
    for (const { track } of dropped) {
      this.#subtitles.get(track.id)?.waiters.close();
      this.#subtitles.delete(track.id);
    }
    for (const packager of added) {
      const { id } = packager.track;
      const name = nameHash(`${this.#options.streamKey}_subtitle${id}`);
      const list = new SubtitleList(name, packager, this);
      this.#subtitles.set(id, list);
      packager.window.on('complete', (segment) => {
        if (this.#followers.size > 0) this.#followers.segment(list.followed(segment));
      });
    }
  }

  #isMade({ packagers }: Variant): boolean {
    return packagers.every((packager) => this.#segmenter.packagers.get(packager.track.id) === packager);
  }

  #advance(packager: TrackPackager<FrameRun>): void {
    const all = [...this.#variants.values()];
    const advanced = all.filter((variant) => variant.packagers.includes(packager) && variant.advance());
    if (advanced.length === 0) return;
    this.#edition = nextEdition();
    // a long segment may have raised the target duration of all
    for (const list of [...all, ...this.#subtitles.values()]) list.changed();
    this.readiness.note(all);
    this.#options.onProgress();
  }
}

/** Name of a track, unique in its stream. */
function nameOf(packager: TrackPackager<FrameRun>, all: readonly TrackPackager<FrameRun>[]): string {
  const { name, type } = packager.track;
  const alike = all.filter(({ track }) => track.type === type && track.name === name);
  return `${type}${name}${alike.indexOf(packager)}`;
}

function isMadeOf({ packagers }: Variant, own: readonly TrackPackager<FrameRun>[]): boolean {
  return packagers.length === own.length && packagers.every((one, index) => one === own[index]);
}
