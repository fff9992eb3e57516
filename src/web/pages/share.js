import { CopyButton, element } from './common.js';
import { qrCode } from './qr.js';

const SVG = 'http://www.w3.org/2000/svg';
/** Modules of white around a code, without which readers do not find it. */
const QUIET = 4;

/** A QR code as a picture, or the reason why there is none. */
async function qrPicture(text) {
  const library = await import('./qrcode-generator.js').catch(() => undefined);
  if (library === undefined) return element('p', { className: 'muted' }, 'The QR code could not be loaded.');
  const modules = qrCode(library.default, text);
  if (modules === undefined) return element('p', { className: 'muted' }, 'The address is too long for a QR code.');
  const size = modules.length + 2 * QUIET;
  const squares = modules.flatMap((row, y) =>
    row.flatMap((dark, x) => (dark ? [`M${x + QUIET} ${y + QUIET}h1v1h-1z`] : [])),
  );
  const picture = document.createElementNS(SVG, 'svg');
  picture.setAttribute('viewBox', `0 0 ${size} ${size}`);
  picture.setAttribute('role', 'img');
  picture.setAttribute('aria-label', `QR code of ${text}`);
  const path = document.createElementNS(SVG, 'path');
  path.setAttribute('d', squares.join(''));
  picture.append(path);
  return picture;
}

const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');

/** HTML that shows the player in a page of another site. */
export function embedCode(pageUrl, title) {
  const url = new URL(pageUrl);
  url.searchParams.set('embed', '');
  return (
    `<iframe src="${escaped(url.href)}" title="${escaped(title)}" width="640" height="360" ` +
    'allow="autoplay; fullscreen; picture-in-picture" allowfullscreen></iframe>'
  );
}

/**
 * What a viewer passes on: the page's address, a code of it for a telephone, and HTML for other sites.
 * @param urlOf the address of the page, as it is when the dialog opens
 */
export class ShareDialog {
  element = element('dialog', { className: 'share', ariaLabel: 'Share' });
  #urlOf;
  #title;

  constructor(urlOf, title) {
    this.#urlOf = urlOf;
    this.#title = title;
    // a click beside the dialog closes it
    this.element.addEventListener('click', ({ target }) => target === this.element && this.element.close());
  }

  open() {
    const url = this.#urlOf();
    const place = element('div', { className: 'qr' });
    void qrPicture(url).then((code) => place.replaceChildren(code));
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
