import type { Logger } from '../log/log.ts';
import { SrtMissingError } from '../protocols/srt/library.ts';

/** Opens an SRT component. Without libsrt it is skipped, and the log names what is missing. */
export async function whereSrtIs<T>(log: Logger, open: () => Promise<T>): Promise<T | undefined> {
  try {
    return await open();
  } catch (error) {
    if (!(error instanceof SrtMissingError)) throw error;
    log.error({ module: 'srt' }, `${error.message}; SRT is off`);
    return undefined;
  }
}
