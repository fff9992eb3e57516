import type { Application } from '../../core/application.ts';
import type { Packet } from '../../core/packet.ts';
import type { Playlist } from '../../core/playlist.ts';
import type { InputStream } from '../../core/input-stream.ts';
import type { OutputStream } from '../../core/output-stream.ts';
import type { Track } from '../../core/track.ts';
import { KilnError } from '../../errors.ts';

/** Publishes an input stream as an output stream of the same name and tracks, without output profiles. */
export class Passthrough {
  readonly #application: Application;
  readonly #input: InputStream;
  #output: OutputStream | undefined;
  #playlists: readonly Playlist[] = [];
  #tracks: ReadonlyMap<Track, Track> = new Map();
  readonly #listed = new Set<string | undefined>();

  /** @param onRefused is called with the reason when the name is in use by another output stream of the application */
  constructor(application: Application, input: InputStream, onRefused: (reason: string) => void) {
    this.#application = application;
    this.#input = input;
    input.on('tracks', (tracks) => {
      try {
        this.#set(tracks);
      } catch (error) {
        if (!(error instanceof KilnError)) throw error;
        onRefused(error.message);
      }
    });
  }

  setPlaylists(playlists: readonly Playlist[]): void {
    this.#playlists = playlists;
  }

  /** @throws streamExists */
  #set(tracks: readonly Track[]): void {
    const present = this.#output;
    const output = present ?? this.#application.addOutput(this.#input, this.#input.name);
    this.#output = output;
    this.#tracks = new Map(tracks.map((track) => [track, this.#tracks.get(track) ?? bypassed(track)]));
    output.setTracks([...this.#tracks.values()]);
    for (const { fileName } of this.#playlists) {
      if (this.#listed.has(fileName)) continue;
      this.#listed.add(fileName);
      output.followTracks(() => this.#playlists.find((playlist) => playlist.fileName === fileName));
    }
    if (present !== undefined) return;
    this.#input.read({ packet: (packet) => this.#pass(output, packet) });
    this.#application.announce(output);
    this.#application.outputsMade(this.#input);
  }

  #pass(output: OutputStream, packet: Packet): void {
    const track = this.#tracks.get(packet.track);
    if (track === undefined) return;
    if (track === packet.track) return output.write(packet);
    const { dts, pts, duration, key, data } = packet;
    output.write({ track, dts, pts, duration, key, data });
  }
}

/** Marks a track as bypassed. Tracks that an origin describes are marked already. */
function bypassed(track: Track): Track {
  return track.bypass ? track : Object.freeze({ ...track, source: track.id, bypass: true });
}
