import { CopyButton, element } from './common.js';
import { qrCode } from './qr.js';

const SVG = 'http://www.w3.org/2000/svg';
/** Modules of white around a code, without which readers do not find it. */
const QUIET = 4;

/**
 * A QR code as SVG, or the reason why there is none.
 * @param {string} text
 */
async function qrImage(text) {
  const library = await import('./qrcode-generator.js').catch(() => undefined);
  if (library === undefined) return element('p', { className: 'muted' }, 'The QR code could not be loaded.');
  const modules = qrCode(library.default, text);
  if (modules === undefined) return element('p', { className: 'muted' }, 'The address is too long for a QR code.');
  const size = modules.length + 2 * QUIET;
  const squares = modules.flatMap((row, y) =>
    row.flatMap((dark, x) => (dark ? [`M${x + QUIET} ${y + QUIET}h1v1h-1z`] : [])),
  );
  const image = document.createElementNS(SVG, 'svg');
  image.setAttribute('viewBox', `0 0 ${size} ${size}`);
  image.setAttribute('role', 'img');
  image.setAttribute('aria-label', `QR code of ${text}`);
  const path = document.createElementNS(SVG, 'path');
  path.setAttribute('d', squares.join(''));
  image.append(path);
  return image;
}

/** @param {string} text */
const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');

/**
 * HTML that shows the player in a page of another site.
 * @param {string} pageUrl
 * @param {string} title
 */
export function embedCode(pageUrl, title) {
  const url = new URL(pageUrl);
  url.searchParams.set('embed', '');
  return (
    `<iframe src="${escaped(url.href)}" title="${escaped(title)}" width="640" height="360" ` +
    'allow="autoplay; fullscreen; picture-in-picture" allowfullscreen></iframe>'
  );
}

/** A dialog that offers the page's address, a code of it for a telephone, and HTML for other sites. */
export class ShareDialog {
  element = element('dialog', { className: 'share', ariaLabel: 'Share' });
  #urlOf;
  #title;

  /**
   * @param {() => string} urlOf address of the page when the dialog opens
   * @param {string} title
   */
  constructor(urlOf, title) {
    this.#urlOf = urlOf;
    this.#title = title;
    // a click beside the dialog closes it
    this.element.addEventListener('click', ({ target }) => target === this.element && this.element.close());
  }

  open() {
    const url = this.#urlOf();
    const place = element('div', { className: 'qr' });
    void qrImage(url).then((code) => place.replaceChildren(code));
    const close = element('button', { type: 'button', className: 'plain', textContent: 'Close' });
    close.addEventListener('click', () => this.element.close());
    this.element.replaceChildren(
      element(
        'div',
        { className: 'share-body' },
        element('div', { className: 'share-head' }, element('h2', {}, 'Share'), close),
        place,
        copyField('Address of this page', url, 2),
        copyField('HTML for another site', embedCode(url, this.#title), 6),
      ),
    );
    this.element.showModal();
  }
}

/**
 * @param {string} name
 * @param {string} text
 * @param {number} rows
 */
function copyField(name, text, rows) {
  const field = element('textarea', { value: text, readOnly: true, rows, id: name.replaceAll(' ', '-') });
  return element(
    'div',
    { className: 'field' },
    element(
      'div',
      { className: 'field-head' },
      element('label', { htmlFor: field.id }, name),
      new CopyButton(() => text).element,
    ),
    field,
  );
}
