import { randomUUID } from 'node:crypto';
import type { OutputProfileConfig } from '../../config/model.ts';
import { outputName } from '../../config/output-name.ts';
import type { Application } from '../../core/application.ts';
import { EVENT_TRACK_NAME } from '../../core/event-tracks.ts';
import type { OutputStream } from '../../core/output-stream.ts';
import { VIDEO_TIMEBASE } from '../../core/timebase.ts';
import type { DataTrack, Track } from '../../core/track.ts';
import { kilnError } from '../../errors.ts';
import { descriptionOf, type WireDescription } from '../../protocols/ovt/description.ts';
import { wirePlaylist, wireTrack } from '../../protocols/ovt/tracks.ts';
import { wireForm, type WireForms } from '../../protocols/ovt/wire-form.ts';
import { hasAll, tracksOf } from './trackset.ts';

type TrackSet = OutputProfileConfig['tracksets'][number];

const uuids = new WeakMap<OutputStream, string>();

/** Tracks and description of an output stream for one OVT client. */
export class Offer {
  readonly output: OutputStream;
  readonly #application: Application;
  readonly #forms: WireForms;
  readonly #trackset: TrackSet | undefined;
  #events: DataTrack | undefined;

  /**
   * @param trackset name of one in the stream's output profile; undefined for all tracks
   * @throws ovtTracksetNotFound, also for a strict trackset when the stream lacks one of its tracks
   */
  constructor(application: Application, output: OutputStream, trackset: string | undefined, forms: WireForms) {
    this.output = output;
    this.#application = application;
    this.#forms = forms;
    if (trackset === undefined) return;
    const { outputProfile } = application.config.outputProfiles;
    const profile = outputProfile.find((one) => outputName(one, output.input.name) === output.name);
    this.#trackset = profile?.tracksets.find(({ name }) => name === trackset);
    const { strict } = this.#trackset ?? {};
    if (this.#trackset === undefined || (strict && !hasAll(this.#trackset, output.tracks))) {
      throw kilnError('ovtTracksetNotFound', trackset);
    }
  }

  /**
   * Selects the tracks to send. Edges always get one event track, from the start and even without events: OvenMediaEngine lists
   * it so.
   */
  select(tracks: readonly Track[]): readonly Track[] {
    const chosen = this.#trackset === undefined ? tracks : tracksOf(this.#trackset, tracks);
    const sent = chosen.filter((track) => wireForm(track, this.#forms) !== undefined);
    if (this.#forms === 'plain' || this.#trackset !== undefined) return sent;
    const media = sent.filter(({ type }) => type !== 'data');
    return media.length === 0 ? [] : [...media, this.#eventsBehind(media)];
  }

  #eventsBehind(media: readonly Track[]): DataTrack {
    const id = 1 + Math.max(...media.map((track) => track.id));
    if (this.#events?.id !== id)
      this.#events = {
        id,
        name: EVENT_TRACK_NAME,
        type: 'data',
        codec: 'ID3v2',
        timebase: VIDEO_TIMEBASE,
        bypass: true,
      };
    return this.#events;
  }

  /** Id of the stream's run, the same on all nodes. */
  get run(): string {
    return this.output.run?.id ?? uuidOf(this.output);
  }

  /** Description for the client. With a trackset it has no playlists: they may name other tracks. */
  describe(): WireDescription {
    const { output } = this;
    return descriptionOf({
      appName: this.#application.internalName,
      streamName: output.name,
      originStreamUUID: this.run,
      playlists: this.#trackset === undefined ? output.playlists.map(wirePlaylist) : [],
      tracks: this.select(output.tracks).map(wireTrack),
    });
  }
}

function uuidOf(output: OutputStream): string {
  const uuid = uuids.get(output) ?? randomUUID();
  uuids.set(output, uuid);
  return uuid;
}
