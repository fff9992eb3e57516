import { isDeepStrictEqual } from 'node:util';

/** Settings of Redis by which it may lose what nodes rely on. */
export interface StoreSettings {
  /** `maxmemory-policy`; undefined when Redis does not say. With any but `noeviction` it drops keys when its memory is full. */
  readonly evictionPolicy: string | undefined;
  /** Redis has replicas, and takes writes that none of them has (`min-replicas-to-write` 0). */
  readonly writesAlone: boolean;
}

/** Settings in the answer to INFO. */
export function settingsIn(info: string): StoreSettings {
  const value = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1];
  return {
    evictionPolicy: value('maxmemory_policy'),
    // INFO has it only where a minimum is set
    writesAlone: Number(value('connected_slaves') ?? 0) > 0 && value('min_slaves_good_slaves') === undefined,
  };
}

/**
 * Reports the settings of Redis with the first call of the returned function, and when they differ at a later one. Without an
 * answer nothing is reported: an ACL may forbid INFO, and a connection that has ended is reported elsewhere.
 * @param readInfo answer of Redis to INFO
 * @returns rejects with what `onSettings` throws
 */
export function settingsReport(
  readInfo: () => Promise<string>,
  onSettings: (settings: StoreSettings) => void,
): () => Promise<void> {
  let reported: StoreSettings | undefined;
  return async () => {
    const info = await readInfo().catch(() => undefined);
    if (info === undefined) return;
    const settings = settingsIn(info);
    if (isDeepStrictEqual(settings, reported)) return;
    reported = settings;
    onSettings(settings);
  };
}
