import type { OutputProfileConfig } from '../config/model.ts';
import type { Application } from '../core/application.ts';
import type { Packet } from '../core/packet.ts';
import type { InputStream, OutputStream } from '../core/stream.ts';
import type { Track } from '../core/track.ts';
import { KilnError } from '../errors.ts';
import type { Logger } from '../log.ts';
import { profilePlaylists } from './playlists.ts';
import { outputName, planTracks } from './profile.ts';

/** Makes the output streams of an input stream, one for each output profile of its application. */
export function attachOutputs(input: InputStream, application: Application, log: Logger): void {
  for (const profile of application.config.outputProfiles.outputProfile) {
    new ProfileOutput(input, application, profile, log.child({ stream: input.name, profile: profile.name }));
  }
}

/**
 * One output profile at work on one input stream. Bypassed tracks pass by reference: an output
 * packet is the input's with the output's track on it. Ends with its input.
 */
class ProfileOutput {
  readonly #input: InputStream;
  readonly #application: Application;
  readonly #profile: OutputProfileConfig;
  readonly #log: Logger;
  readonly #ids = new Map<string, number>();
  readonly #told = new Set<string>();
  #output: OutputStream | undefined;
  #routes = new Map<Track, Track[]>();

  constructor(input: InputStream, application: Application, profile: OutputProfileConfig, log: Logger) {
    this.#input = input;
    this.#application = application;
    this.#profile = profile;
    this.#log = log;
    input.on('tracks', () => this.#plan());
    this.#plan();
    input.read({ packet: (packet) => this.#pass(packet) });
  }

  #plan(): void {
    const plan = planTracks(this.#profile, this.#input.tracks);
    const routes = new Map<Track, Track[]>();
    const tracks: Track[] = [];
    for (const { from, variantName, key, encoding, problem } of plan) {
      if (encoding !== undefined || problem !== undefined) {
        this.#tellEncoder(variantName);
        continue;
      }
      const track = this.#routed(from, key) ?? { ...from, id: this.#id(key), name: variantName, bypass: true };
      tracks.push(track);
      routes.set(from, [...(routes.get(from) ?? []), track]);
    }
    this.#routes = routes;
    if (tracks.length === 0 && this.#output === undefined) return;
    const known = this.#output;
    const output = known ?? this.#create();
    if (output === undefined) return;
    this.#output = output;
    output.setTracks(tracks);
    if (known === undefined) this.#application.announce(output);
  }

  #create(): OutputStream | undefined {
    const name = outputName(this.#profile, this.#input.name);
    try {
      const output = this.#application.addOutput(this.#input, name);
      for (const playlist of profilePlaylists(this.#profile)) output.addPlaylist(playlist);
      return output;
    } catch (error) {
      if (!(error instanceof KilnError)) throw error;
      this.#log.error({ output: name }, `no output stream: ${error.message}`);
      return undefined;
    }
  }

  #pass(packet: Packet): void {
    const output = this.#output;
    const tracks = this.#routes.get(packet.track);
    if (output === undefined || tracks === undefined) return;
    const { dts, pts, duration, key, data } = packet;
    for (const track of tracks) output.write({ track, dts, pts, duration, key, data });
  }

  /** The output track already made of an unchanged input track. */
  #routed(from: Track, key: string): Track | undefined {
    const id = this.#ids.get(key);
    return this.#routes.get(from)?.find((track) => track.id === id);
  }

  #id(key: string): number {
    const id = this.#ids.get(key) ?? this.#ids.size;
    this.#ids.set(key, id);
    return id;
  }

  #tellEncoder(variantName: string): void {
    if (this.#told.has(variantName)) return;
    this.#told.add(variantName);
    this.#log.info({ variant: variantName }, 'this variant needs an encoder, which Kiln does not have yet: left out');
  }
}
