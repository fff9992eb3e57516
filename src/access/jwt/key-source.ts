import { Denial } from '../denial.ts';
import type { TokenKey } from './keys.ts';

/** Where the keys of a virtual host's tokens come from. */
export interface KeySource {
  /**
   * The present keys.
   * @param id `kid` of a token: where it is unknown, the keys may have been changed
   * @throws Denial tokenKeys when there are none
   */
  keys(id: string | undefined): Promise<readonly TokenKey[]> | readonly TokenKey[];
}

/** Whether a token may have been signed with one of the keys. @param id its `kid` */
export function hasKey(keys: readonly TokenKey[], id: string | undefined): boolean {
  return id === undefined || keys.some((key) => key.id === undefined || key.id === id);
}

/** Error for all tokens while there are no keys. @param failure of the last trial to read them; undefined before the first */
export function withoutKeys(failure: string | undefined): Denial {
  return new Denial('tokenKeys', `there are no keys for tokens: ${failure ?? 'none has been read so far'}`);
}
