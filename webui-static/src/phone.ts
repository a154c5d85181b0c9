// Whether the page is on a phone: its width is that of the style sheets' rules for phones. One query for all, since
// asking for a new one costs as much as rendering a cell of a table.
const phone = matchMedia('(max-width: 40rem)');

export const onPhone = (): boolean => phone.matches;
