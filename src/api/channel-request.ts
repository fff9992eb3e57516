import { problemText } from '../config/names.ts';
import { kilnError } from '../errors.ts';
import type { Checked } from '../channels/sources/definition-form.ts';

/**
 * The definition of a channel that a body has.
 * @throws channelInvalid, which names the element that is wrong
 */
export function checkedChannel<T>(checked: Checked<T>): T {
  if (checked.ok) return checked.value;
  const [first] = checked.problems;
  throw kilnError('channelInvalid', first === undefined ? 'The body is not valid' : problemText(first));
}
