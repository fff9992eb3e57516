import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { ConfigError } from '../../../config/config-error.ts';
import { drmOf, readDrmInfo, type DrmInfo, type DrmKeys, type DrmNames } from '../../../config/drm-info.ts';
import type { HlsPublisherConfig, LlhlsPublisherConfig } from '../../../config/model.ts';
import { wildcard } from '../../../lib/wildcard.ts';
import type { Logger } from '../../../log/log.ts';
import type { KeyServerConfig } from './key-server.ts';

interface ReadFile {
  readonly state: string;
  readonly info: DrmInfo;
}

/** DRM files, each read again when it has changed. */
export class DrmFiles {
  readonly #folder: string;
  readonly #read = new Map<string, ReadFile>();

  /** @param folder of Server.xml */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Keys that a file has for a stream; undefined where no entry matches it. @throws ConfigError */
  find(infoFile: string, names: DrmNames): DrmKeys | undefined {
    const path = resolve(this.#folder, infoFile);
    const facts = statSync(path, { throwIfNoEntry: false });
    const state = facts === undefined ? '' : `${facts.mtimeMs} ${facts.ctimeMs} ${facts.size} ${facts.ino}`;
    let file = this.#read.get(path);
    if (file === undefined || file.state !== state) {
      this.#read.delete(path);
      this.#read.set(path, (file = { state, info: readDrmInfo(path) }));
    }
    return drmOf(file.info, names);
  }
}

/** Where the keys of a stream come from: an entry of the DRM file, or a key server. */
export type FoundDrm = {
  /** Seconds between two rotations; 0: on request only. */
  readonly period: number;
} & (
  | {
      readonly keys: DrmKeys;
      /** Reads the present keys. @throws ConfigError */
      readonly read: () => DrmKeys | undefined;
    }
  | { readonly server: KeyServerConfig }
);

/**
 * Finds how a stream is encrypted, when it starts.
 * @returns undefined for a stream in clear: without DRM, or without an entry; `unusable` where the file cannot tell
 */
export function drmOfStream(
  config: HlsPublisherConfig | LlhlsPublisherConfig,
  files: DrmFiles,
  names: DrmNames,
  log: Logger,
): FoundDrm | undefined | 'unusable' {
  if (!('drm' in config) || config.drm?.enable !== true) return undefined;
  const { infoFile, keyServer, keyRotationPeriod: period, refuseClear } = config.drm;
  const server = keyServer.find(({ streamName }) => wildcard(streamName).test(names.stream));
  if (server !== undefined) return { server, period };
  try {
    const read = (): DrmKeys | undefined => files.find(infoFile, names);
    const keys = infoFile === '' ? undefined : read();
    if (keys !== undefined) return { keys, read, period };
    if (refuseClear) {
      log.error('the stream is not published: no entry of DRM matches it, and RefuseClear is on');
      return 'unusable';
    }
    log.warn('the stream is published in clear: no entry of DRM matches it');
    return undefined;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    log.error({ reason: error.message }, 'the stream is not published: its DRM file cannot be used');
    return 'unusable';
  }
}
