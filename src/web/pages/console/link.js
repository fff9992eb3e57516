import { copied, element, messageOf, root } from '../common.js';
import { actionButton } from './parts.js';

/** @import { ReadOnlyLink } from '../answers.ts' */
/** @import { Api } from './api.js' */

/** @type {[text: string, seconds: number][]} */
const TERMS = [
  ['1 hour', 3600],
  ['8 hours', 8 * 3600],
  ['1 day', 86_400],
  ['7 days', 7 * 86_400],
  ['30 days', 30 * 86_400],
];

/** A dialog that makes read-only links to the console, which expire. */
export class LinkDialog {
  #api;
  #dialog = element('dialog', { className: 'editor', ariaLabel: 'Share the console' });
  #term = element(
    'select',
    { id: 'term' },
    ...TERMS.map(([textContent, value]) => element('option', { value: `${value}`, textContent })),
  );
  #made = element('p');
  #wrong = element('p', { className: 'wrong', hidden: true });

  /** @param {Api} api */
  constructor(api) {
    this.#api = api;
    this.#wrong.role = 'alert';
    this.#made.role = 'status';
    this.#term.value = '86400';
    this.#dialog.addEventListener('close', () => this.#dialog.remove());
  }

  open() {
    const make = actionButton('Make a link', () => this.#make());
    const close = actionButton('Close', async () => this.#dialog.close(), { className: 'plain' });
    this.#dialog.append(
      element('h2', {}, 'Share the console'),
      element(
        'p',
        { className: 'muted' },
        'Whoever has the link may look at everything but configuration and secrets, and change nothing. It ends by itself, and ' +
          'all links end when the access token is changed.',
      ),
      element('p', { className: 'inline' }, element('label', { htmlFor: 'term' }, 'Valid for'), this.#term, make),
      this.#wrong,
      this.#made,
      close,
    );
    document.body.append(this.#dialog);
    this.#dialog.showModal();
  }

  async #make() {
    this.#wrong.hidden = true;
    try {
      const body = { expiresIn: Number(this.#term.value) };
      /** @type {ReadOnlyLink} */
      const { path } = await this.#api.call('POST', '/v1/readOnlyLinks', body);
      this.#made.replaceChildren(copied(new URL(path.slice(1), root).href));
    } catch (error) {
      this.#wrong.textContent = messageOf(error);
      this.#wrong.hidden = false;
    }
  }
}
