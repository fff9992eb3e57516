import { joinKey } from '#cluster';
import type { Application } from '../../core/application.ts';
import { nameObjection } from '../../core/names.ts';
import type { Registry } from '../../core/registry.ts';
import type { VirtualHost } from '../../core/vhost.ts';
import { KilnError } from '../../errors.ts';
import type { Logger } from '../../log.ts';
import type { OriginMaps } from '../../origins/origin-maps.ts';
import type { StreamDirectory } from '../../origins/stream-directory.ts';
import { PullError } from './error.ts';
import { matchOrigin, storeOrder } from './origin-match.ts';
import type { PulledStreams } from './pulled-streams.ts';
import type { PullOrder } from './spec.ts';

/** Names that are looked for at once; whoever asks for another gets none. */
const MAX_ASKED = 200;
/** How long a name that no origin has is not asked for again, and how many of those are known. */
const MISSING_MS = 1000;
const MAX_MISSING = 10_000;
/** How long a stream that is pulled here or elsewhere may take to be there for viewers. */
const APPEARS_MS = 5000;
/** Who is to pull it has its name by then. */
const NAMED_MS = 500;
const LOOK_MS = 100;

export interface DemandOptions {
  readonly registry: Registry;
  readonly directory: StreamDirectory;
  readonly pulls: PulledStreams;
  readonly maps: OriginMaps;
  readonly log: Logger;
}

/** Pulls the streams that viewers ask for and nobody has, from where `Origins` and `OriginMapStore` say that they are. */
export class Demand {
  readonly #options: DemandOptions;
  readonly #asked = new Map<string, Promise<boolean>>();
  /** Names that no origin has, and until when that is believed; the oldest first. */
  readonly #missing = new Map<string, number>();

  constructor(options: DemandOptions) {
    this.#options = options;
  }

  /**
   * Lets a stream be pulled, once for all who ask at the same time.
   * @param name of the output stream
   * @returns whether it is there now: on this node, or on another that came first
   */
  readonly bring = (application: Application, name: string, query: URLSearchParams): Promise<boolean> => {
    const key = joinKey(application.vhost.name, application.name, name);
    const present = this.#asked.get(key);
    if (present !== undefined) return present;
    if (!this.#mayBe(application.vhost, name) || this.#isMissing(key) || this.#asked.size >= MAX_ASKED) return Promise.resolve(false);
    const answer = this.#bring(application, name, query).then((found) => {
      if (!found) this.#setMissing(key);
      return found;
    }).finally(() => this.#asked.delete(key));
    this.#asked.set(key, answer);
    return answer;
  };

  /**
   * The application of a stream that an origin has, made of the template of its virtual host.
   * @returns undefined when no origin has it
   */
  readonly application = async (vhost: VirtualHost, app: string, name: string): Promise<Application | undefined> => {
    if (!this.#mayBe(vhost, name)) return undefined;
    const key = joinKey(vhost.name, app, name);
    const matched = matchOrigin(vhost.config.origins, app, name, new URLSearchParams()) !== undefined;
    if (!matched && (this.#isMissing(key) || (await this.#options.maps.find(vhost, app, name)) === undefined)) {
      this.#setMissing(key);
      return undefined;
    }
    try {
      return vhost.demandApplication(app);
    } catch (error) {
      if (error instanceof KilnError) return undefined;
      throw error;
    }
  };

  /** Whether any origin is configured that may have it: most virtual hosts have none. */
  #mayBe({ config }: VirtualHost, name: string): boolean {
    return (config.origins !== undefined || config.originMapStore !== undefined) && nameObjection(name) === undefined;
  }

  async #bring(application: Application, name: string, query: URLSearchParams): Promise<boolean> {
    const { maps } = this.#options;
    const { origins } = application.vhost.config;
    const matched = matchOrigin(origins, application.name, name, query);
    if (matched !== undefined && (await this.#pull(application, name, matched))) return await this.#appears(application, name);
    const url = await maps.find(application.vhost, application.name, name);
    if (url === undefined || !(await this.#pull(application, name, storeOrder(origins, url)))) return false;
    return await this.#appears(application, name);
  }

  /** @returns whether it is pulled now, here or elsewhere */
  async #pull(application: Application, name: string, order: PullOrder): Promise<boolean> {
    const { pulls, registry, log } = this.#options;
    try {
      if (registry.draining) await pulls.create(application, name, order);
      else await pulls.createHere(application, name, order);
      return true;
    } catch (error) {
      if (error instanceof KilnError && error.code === 'streamExists') return true;
      if (!(error instanceof KilnError || error instanceof PullError)) throw error;
      log.debug({ stream: name, reason: error.message }, 'a stream that is asked for cannot be pulled');
      return false;
    }
  }

  /** Waits until the stream can be watched, here or on another node. @returns false when that does not come */
  async #appears(application: Application, name: string): Promise<boolean> {
    const { directory } = this.#options;
    const stream = { vhost: application.vhost.name, app: application.name, stream: name };
    const since = performance.now();
    for (;;) {
      const waited = performance.now() - since;
      const output = application.outputs.get(name);
      if (output !== undefined && output.tracks.length > 0) return true;
      if (waited > APPEARS_MS || application.closed) return false;
      if ((await directory.locate(application, name)) !== undefined) return true;
      if (waited > NAMED_MS && (await directory.ownerOf(stream)) === undefined) return false;
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  }

  #setMissing(key: string): void {
    if (this.#missing.size >= MAX_MISSING) this.#missing.delete(this.#missing.keys().next().value as string);
    this.#missing.set(key, performance.now() + MISSING_MS);
  }

  #isMissing(key: string): boolean {
    const until = this.#missing.get(key);
    if (until === undefined) return false;
    if (performance.now() < until) return true;
    this.#missing.delete(key);
    return false;
  }
}
