// The package under the name that the server gives it.
export { default } from 'qrcode-generator';
