import { problemText } from '../../config/names.ts';
import { kilnError } from '../../errors.ts';
import type { Checked } from '../../channels/sources/definition-form.ts';

/** Definition of a channel from a body. @throws channelInvalid, which names the element at fault */
export function checkedChannel<T>(checked: Checked<T>): T {
  if (checked.ok) return checked.value;
  const [first] = checked.problems;
  throw kilnError('channelInvalid', first === undefined ? 'The body is not valid' : problemText(first));
}
