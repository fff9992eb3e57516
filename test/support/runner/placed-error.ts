/** Whether a stack names a place, as ava's reporters expect: they end the whole run at an error without one, and lose the results. */
const NAMES_PLACE = /\n {4}at /;

/** Gives an error without a stack one that names this place: errors of malformed data have none. @returns the error, or other reason */
export function placed(error: unknown): unknown {
  if (error instanceof Error && !NAMES_PLACE.test(error.stack ?? ''))
    error.stack = `${error.name}: ${error.message}\n${new Error().stack?.split('\n').slice(1).join('\n') ?? ''}`;
  return error;
}
