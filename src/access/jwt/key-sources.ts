import { resolve } from 'node:path';
import type { VirtualHostConfig } from '../../config/model.ts';
import type { Logger } from '../../log/log.ts';
import { FileKeys } from './file-keys.ts';
import type { KeySource } from './key-source.ts';
import { secretKey } from './keys.ts';
import { RemoteKeys, type FetchKeys } from './remote-keys.ts';

export type JwtConfig = NonNullable<VirtualHostConfig['jwt']>;

export interface KeySourcesOptions {
  /** Base of relative paths. */
  readonly folder: string;
  readonly fetch: FetchKeys;
  readonly log: Logger;
}

/** Sources that are known: beyond it, the one that was used longest ago is forgotten. */
const MAX_SOURCES = 256;

/** The sources of keys for tokens. Virtual hosts with the same URL or file share one, which stays when their configuration changes. */
export class KeySources {
  readonly #options: KeySourcesOptions;
  readonly #log: Logger;
  readonly #remote = new Map<string, RemoteKeys>();
  readonly #files = new Map<string, FileKeys>();
  readonly #secrets = new WeakMap<JwtConfig, KeySource>();

  constructor(options: KeySourcesOptions) {
    this.#options = options;
    this.#log = options.log.child({ module: 'jwt' });
  }

  of(config: JwtConfig): KeySource {
    const { jwksUrl, keyFile, keepKeys } = config;
    if (jwksUrl !== undefined) {
      const { fetch } = this.#options;
      const make = (): RemoteKeys => new RemoteKeys({ url: jwksUrl, fetch, log: this.#log });
      const source = known(this.#remote, jwksUrl, make, (forgotten) => forgotten.close());
      return { keys: (id) => source.keys(id, keepKeys) };
    }
    if (keyFile !== undefined) {
      const path = resolve(this.#options.folder, keyFile);
      return known(this.#files, path, () => new FileKeys(path, this.#log));
    }
    let source = this.#secrets.get(config);
    if (source === undefined) {
      const keys = [secretKey(config.secretKey ?? '')];
      source = { keys: () => keys };
      this.#secrets.set(config, source);
    }
    return source;
  }

  /** Ends what is under way. Idempotent. */
  close(): void {
    for (const source of this.#remote.values()) source.close();
  }
}

function known<S>(sources: Map<string, S>, name: string, make: () => S, forget?: (source: S) => void): S {
  const source = sources.get(name) ?? make();
  sources.delete(name);
  sources.set(name, source);
  const [oldest] = sources;
  if (sources.size > MAX_SOURCES && oldest !== undefined) {
    sources.delete(oldest[0]);
    forget?.(oldest[1]);
  }
  return source;
}
