// Empty state of a list: what is missing, and the command or action that fills it.
import type { ComponentChildren } from 'preact';
import { Copy } from './Copy';
import { Icon, type IconName } from './Icon';

interface Props {
  icon: IconName;
  title: string;
  isPage?: boolean; // it is the whole page
  command?: string; // shown with a button that copies it
  children?: ComponentChildren; // one or two sentences
}

export const Empty = ({ icon, title, isPage, command, children }: Props) => (
  <div class="empty">
    <Icon name={icon} />
    {isPage ? <h1>{title}</h1> : <h2>{title}</h2>}
    {children && <p class="quiet">{children}</p>}
    {command && <Copy text={command} />}
  </div>
);
