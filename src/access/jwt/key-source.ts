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
