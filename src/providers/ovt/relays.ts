import { joinKey, UnavailableError, UnreachableError } from '#cluster';
import type { Application } from '../../core/application.ts';
import type { OutputStream } from '../../core/stream.ts';
import { kilnError } from '../../errors.ts';
import type { Location } from '../../origins/stream-directory.ts';
import { OvtError } from '../../protocols/ovt/error.ts';
import { Relay, type RelayOptions } from './relay.ts';

interface Entry {
  readonly relay: Relay;
  readonly opened: Promise<OutputStream>;
}

/** The output streams of other nodes that viewers of this one watch: each comes once, whoever many there are. */
export class Relays {
  readonly #options: RelayOptions;
  readonly #entries = new Map<string, Entry>();

  constructor(options: RelayOptions) {
    this.#options = { ...options, log: options.log.child({ module: 'relay' }) };
  }

  /** Finds what another node has, as FindOutput does. @throws ownerUnreachable */
  async find(application: Application, name: string): Promise<OutputStream | undefined> {
    const location = await this.#options.directory.locate(application, name);
    if (location === undefined) return undefined;
    try {
      return await this.open(application, name, location);
    } catch (error) {
      if (!(error instanceof OvtError || error instanceof UnreachableError || error instanceof UnavailableError))
        throw error;
      this.#options.log.warn(
        { stream: `${application.internalName}/${name}`, reason: error.message },
        'a stream of another node cannot be relayed',
      );
      if (error instanceof UnreachableError) throw kilnError('ownerUnreachable');
      return undefined;
    }
  }

  /**
   * The relay of an output stream, opened when there is none. Calls at once share it.
   * @throws OvtError, UnreachableError why there is none
   */
  open(application: Application, name: string, location: Location): Promise<OutputStream> {
    const key = joinKey(application.vhost.name, application.name, name);
    const present = this.#entries.get(key);
    if (present !== undefined) return present.opened;
    const relay: Relay = new Relay(application, name, location.input, this.#options, () => {
      if (this.#entries.get(key)?.relay === relay) this.#entries.delete(key);
    });
    const opened = relay.open(location);
    this.#entries.set(key, { relay, opened });
    return opened;
  }

  /** Ends every relay. Idempotent. */
  close(): void {
    for (const { relay } of [...this.#entries.values()]) relay.close('the server is closing');
  }
}
