import { element, messageOf } from '../common.js';
import { actionButton, say } from './parts.js';

/**
 * Answers of calls that change something: of several things one each, of a channel the problems of its schedule.
 * @typedef {{ statusCode?: number, message?: string }[] & { problems?: undefined }} BatchAnswer
 * @typedef {BatchAnswer | { problems?: { description: string }[] } | undefined} ChangeAnswer
 */

/** A dialog that shows JSON, or has it edited and sends it. */
export class Editor {
  element = element('dialog', { className: 'editor' });

  constructor() {
    this.element.ariaLabel = 'JSON';
  }

  /**
   * @param {string} title
   * @param {unknown} value
   */
  show(title, value) {
    const close = actionButton('Close', async () => this.element.close());
    this.#open(title, element('pre', { tabIndex: 0 }, JSON.stringify(value, null, 2)), close);
  }

  /**
   * @param {string} title
   * @param {string} note
   * @param {string | object} value JSON, or an object to show as JSON
   * @param {(text: string) => Promise<ChangeAnswer>} send throws the API's error, which is shown
   */
  edit(title, note, value, send) {
    const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2);
    const field = element('textarea', { value: text, rows: 18, spellcheck: false, ariaLabel: title });
    const wrong = element('p', { className: 'wrong', hidden: true });
    wrong.role = 'alert';
    const save = actionButton('Send', async () => {
      try {
        const answer = await send(field.value);
        const failed = Array.isArray(answer) ? answer.find(({ statusCode = 200 }) => statusCode >= 400) : undefined;
        if (failed !== undefined) throw new Error(`${failed.statusCode} ${failed.message}`);
        this.element.close();
        const problems = answer?.problems?.map(({ description }) => description) ?? [];
        say(['Done', ...problems].join('. '), problems.length > 0);
      } catch (error) {
        wrong.textContent = messageOf(error);
        wrong.hidden = false;
      }
    });
    const cancel = actionButton('Cancel', async () => this.element.close(), { className: 'plain' });
    this.#open(title, element('p', { className: 'muted' }, note), field, wrong, save, cancel);
  }

  /**
   * @param {string} title
   * @param {Node[]} parts
   */
  #open(title, ...parts) {
    this.element.replaceChildren(element('h2', {}, title), ...parts);
    this.element.showModal();
  }
}
