import type { Loops } from '../../../src/channels/sources/live-sources.ts';

/** No channel plays another. */
export const NO_LOOPS: Loops = { chain: async () => undefined };
