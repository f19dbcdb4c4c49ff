/* page.html as bytes of the program: the build generates the source (cmake/embed.cmake). */
#ifndef PH_REPORT_PAGE_TEMPLATE_H
#define PH_REPORT_PAGE_TEMPLATE_H

extern const char ph__page_template[]; /* ends in a NUL */

#endif
