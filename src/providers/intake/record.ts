/** Largest decoder configuration that is taken: real ones have some hundred bytes, and each track keeps its own. */
export const MAX_RECORD_BYTES = 64 * 1024;
